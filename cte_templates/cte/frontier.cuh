// The parts of graph traversals: frontiers, and the steps from one to the next, with all policies. cte.cuh does not include this header.
#pragma once

#include <cte.cuh>
#include <cte/frontier/advance.cuh>
#include <cte/frontier/balanced.cuh>
#include <cte/frontier/bitmap.cuh>
#include <cte/frontier/filter.cuh>
#include <cte/frontier/graph.cuh>
#include <cte/frontier/history.cuh>
#include <cte/frontier/intersection.cuh>
#include <cte/frontier/levels.cuh>
#include <cte/frontier/near_far.cuh>
#include <cte/frontier/pull.cuh>
#include <cte/frontier/queue.cuh>
#include <cte/frontier/reduce_neighbors.cuh>
#include <cte/frontier/staging.cuh>
#include <cte/frontier/vertex_program.cuh>
