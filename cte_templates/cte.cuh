// Collaborative Task Engagement: a kernel is written as if each thread owned one coarse task, and runs with all lanes busy.
//
// The forms for whole kernels have headers of their own: cte/kernel/*.cuh.
#pragma once

#include <cte/any.cuh>
#include <cte/exclusive_scan.cuh>
#include <cte/for_each.cuh>
#include <cte/policies/automatic_block.cuh>
#include <cte/policies/block.cuh>
#include <cte/policies/merge_path.cuh>
#include <cte/policies/thread_warp_block.cuh>
#include <cte/policies/warp.cuh>
#include <cte/policies/warp_chunked.cuh>
#include <cte/policies/warp_segmented.cuh>
#include <cte/version.cuh>
