// Collaborative Task Engagement: a kernel is written as if each thread owned one coarse task, and runs with all lanes busy.
#pragma once

#include <cte/any.cuh>
#include <cte/exclusive_scan.cuh>
#include <cte/for_each.cuh>
#include <cte/policies/warp_segmented.cuh>
#include <cte/version.cuh>
