// Shortest paths from one vertex in the forms that workload.py names. A round, one launch (`program` and `grouped`: two), relaxes the
// edges of the vertices that came nearer in the previous round (Bellman-Ford), or only of those that are near enough (near/far).
//
// Minima do not depend on the order in which they are taken. A round may read distances that it has written: this is harmless and
// saves rounds.
// Distances only fall, so what is no improvement on the distance that a plain load finds needs no atomic operation.
#include <cte/frontier.cuh>

#ifndef CTE_POLICY
#define CTE_POLICY cte::automatic
#endif

constexpr int BLOCK = 256, GROUP = 32;
using Size = unsigned long long;

// Every vertex tests itself: nearer[v] is the latest round in which v must relax its edges. A thread that sets it while v is being
// tested has lowered the distance of v before, so v propagates the new distance in the next round, if not in this one.
extern "C" __global__ void __launch_bounds__(BLOCK)
sssp_plain(int vertices, int round, const int* __restrict__ offsets, const int* __restrict__ neighbors,
           const unsigned* __restrict__ lengths, unsigned* distances, int* nearer, int* changed) {
#pragma ccc for
  for (int v = threadIdx.x + blockIdx.x * blockDim.x; v < vertices; v += gridDim.x * blockDim.x) {
#pragma ccc if
    if (nearer[v] == round) {
      unsigned distance = distances[v];
      int first = offsets[v], last = offsets[v + 1];
#pragma ccc for variable
      for (int k = first; k < last; ++k) {
        int u = neighbors[k];
        unsigned reached = distance + lengths[k];
        if (reached < distances[u] && reached < atomicMin(distances + u, reached)) {
          nearer[u] = round + 1;
          if (*changed == 0) *changed = 1;
        }
      }
    }
  }
}

// The same test, and the edges of a warp's vertices shared by its lanes.
extern "C" __global__ void __launch_bounds__(BLOCK)
sssp_status(int vertices, int round, const int* offsets, const int* neighbors, const unsigned* lengths, unsigned* distances,
            int* nearer, int* changed) {
  const auto is_nearer = [=](int v) { return nearer[v] == round; };
  const auto relax = [=](int u, int edge, unsigned distance) {
    const unsigned reached = distance + lengths[edge];
    if (reached >= distances[u] || reached >= atomicMin(distances + u, reached)) return;
    nearer[u] = round + 1;
    if (*changed == 0) *changed = 1;
  };
  cte::advance_if<BLOCK, CTE_POLICY>(cte::graph{offsets, neighbors}, vertices, is_nearer, relax, [=](int v) { return distances[v]; });
}

// The test reads a bit in place of a word. `spent` is the mask of the previous round, which is not read any more: it is cleared for
// the round after next.
extern "C" __global__ void __launch_bounds__(BLOCK)
sssp_mask(int vertices, const int* offsets, const int* neighbors, const unsigned* lengths, unsigned* distances, unsigned* now,
          unsigned* next, unsigned* spent, int* changed) {
  const cte::bitmap active{now}, nearer{next};
  const auto is_nearer = [=](int v) {
    if (v % 32 == 0) spent[v / 32] = 0;
    return active.test(v);
  };
  const auto relax = [=](int u, int edge, unsigned distance) {
    const unsigned reached = distance + lengths[edge];
    if (reached >= distances[u] || reached >= atomicMin(distances + u, reached)) return;
    if (nearer.set(u) && *changed == 0) *changed = 1;
  };
  cte::advance_if<BLOCK, CTE_POLICY>(cte::graph{offsets, neighbors}, vertices, is_nearer, relax, [=](int v) { return distances[v]; });
}

// The vertices that have come nearer are in a queue, each once: queued[u] is the last round in which u was appended.
extern "C" __global__ void __launch_bounds__(BLOCK)
sssp_push(int round, const int* offsets, const int* neighbors, const unsigned* lengths, unsigned* distances, int* queued, int* now,
          Size* now_size, int* next, Size* next_size, Size capacity) {
  const cte::queue<int> nearer{next, next_size, capacity};
  const auto relax = [=](int u, int edge, unsigned distance) {
    const unsigned reached = distance + lengths[edge];
    if (reached >= distances[u] || reached >= atomicMin(distances + u, reached)) return;
    if (atomicExch(queued + u, round) != round) nearer.push(u);
  };
  cte::advance<BLOCK, CTE_POLICY>(cte::graph{offsets, neighbors}, cte::queue<int>{now, now_size, capacity}, relax,
                                  [=](int v) { return distances[v]; });
}

// The queue knows where the edges of its vertices begin: all warps take the same number of edges. Each collects what it appends.
extern "C" __global__ void __launch_bounds__(BLOCK)
sssp_balance(int round, const int* offsets, const int* neighbors, const unsigned* lengths, unsigned* distances, int* queued, int* now,
             unsigned* now_begins, Size* now_counts, int* next, unsigned* next_begins, Size* next_counts, unsigned capacity) {
  __shared__ cte::staging<BLOCK, int> staged;
  using frontier = cte::scanned_queue<int, int>;
  const frontier nearer{offsets, next, next_begins, next_counts, capacity};
  staged.clear();
  const auto relax = [=](int u, int edge, unsigned distance) {
    const unsigned reached = distance + lengths[edge];
    if (reached >= distances[u] || reached >= atomicMin(distances + u, reached)) return;
    if (atomicExch(queued + u, round) != round) staged.push(u, nearer);
  };
  cte::advance_balanced<BLOCK>(cte::graph{offsets, neighbors}, frontier{offsets, now, now_begins, now_counts, capacity}, relax,
                               [=](int v) { return distances[v]; });
  staged.flush(nearer);
}

// Two launches a round that pull. The vertices that came nearer wake those that their edges lead to; then each vertex that is awake
// looks for the shortest path along the edges that lead to it, and one thread writes it.
extern "C" __global__ void __launch_bounds__(BLOCK)
sssp_wake(const int* offsets, const int* neighbors, int* now, Size* now_size, Size capacity, unsigned* awake) {
  const cte::bitmap woken{awake};
  cte::advance<BLOCK, CTE_POLICY>(cte::graph{offsets, neighbors}, cte::queue<int>{now, now_size, capacity},
                                  [=](int u, int) { woken.set(u); });
}

__device__ auto shortest(const unsigned* in_lengths, unsigned* distances) {
  const auto own = [=](int v) { return distances[v]; };
  const auto through = [=](int u, int edge) { return distances[u] + in_lengths[edge]; };
  const auto accept = [=](int v, unsigned distance) {
    const bool is_nearer = distance < distances[v];
    if (is_nearer) distances[v] = distance;
    return is_nearer;
  };
  return cte::vertex_program{own, through, cte::minimum{}, accept};
}

// `spent` is the mask of the previous round, which is cleared for the next one.
extern "C" __global__ void __launch_bounds__(BLOCK)
sssp_program(int vertices, const int* in_offsets, const int* sources, const unsigned* in_lengths, unsigned* distances,
             unsigned* awake, unsigned* spent, int* next, Size* next_size, Size capacity) {
  const cte::bitmap woken{awake};
  const auto is_awake = [=](int v) {
    if (v % 32 == 0) spent[v / 32] = 0;
    return woken.test(v);
  };
  cte::step_if<BLOCK, CTE_POLICY>(shortest(in_lengths, distances), cte::graph{in_offsets, sources}, vertices, is_awake,
                                  cte::queue<int>{next, next_size, capacity});
}

// The same with a bit for each group of 32 vertices, and one edge for all that lead from a group to another (F. Khorasani's vertex
// grouping). Masks and edges to wake along take less memory, and warps are awake or not as a whole, but all vertices of a group look
// for shorter paths. `spent` is the mask of groups that were awake in the previous round.
extern "C" __global__ void __launch_bounds__(BLOCK)
sssp_wake_groups(int groups, const int* offsets, const int* neighbors, unsigned* nearer, unsigned* awake, unsigned* spent) {
  const cte::bitmap now{nearer}, woken{awake};
  const auto is_nearer = [=](int group) {
    if (group % 32 == 0) spent[group / 32] = 0;
    return now.test(group);
  };
  cte::advance_if<BLOCK, CTE_POLICY>(cte::graph{offsets, neighbors}, groups, is_nearer, [=](int group, int) { woken.set(group); });
}

// `told` is the mask that woke these groups, which is cleared for the next round.
extern "C" __global__ void __launch_bounds__(BLOCK)
sssp_program_groups(int vertices, const int* in_offsets, const int* sources, const unsigned* in_lengths, unsigned* distances,
                    unsigned* awake, unsigned* told, unsigned* next, int* changed) {
  const cte::bitmap woken{awake}, nearer{next};
  const auto is_awake = [=](int v) {
    if (v % (32 * GROUP) == 0) told[v / (32 * GROUP)] = 0;
    return woken.test(v / GROUP);
  };
  const auto tell = [=](int v) {
    if (nearer.set(v / GROUP) && *changed == 0) *changed = 1;
  };
  cte::step_if<BLOCK, CTE_POLICY>(shortest(in_lengths, distances), cte::graph{in_offsets, sources}, vertices, is_awake, tell);
}

// Vertices that are no nearer than `bound` go to a pile. piled[u] is the last phase in which u was added to it; each phase has its
// own bound.
extern "C" __global__ void __launch_bounds__(BLOCK)
sssp_near(int round, int phase, unsigned bound, const int* offsets, const int* neighbors, const unsigned* lengths,
          unsigned* distances, int* queued, int* piled, int* now, unsigned* now_begins, Size* now_counts, int* next,
          unsigned* next_begins, Size* next_counts, unsigned capacity, int* far, Size* far_size, Size far_capacity) {
  __shared__ cte::staging<BLOCK, int, 128> staged_near, staged_far;
  using frontier = cte::scanned_queue<int, int>;
  const frontier near{offsets, next, next_begins, next_counts, capacity};
  const cte::queue<int> later{far, far_size, far_capacity};
  staged_near.clear();
  staged_far.clear();
  const auto relax = [=](int u, int edge, unsigned distance) {
    const unsigned reached = distance + lengths[edge];
    if (reached >= distances[u] || reached >= atomicMin(distances + u, reached)) return;
    if (reached < bound) {
      if (atomicExch(queued + u, round) != round) staged_near.push(u, near);
    } else if (atomicExch(piled + u, phase) != phase) {
      staged_far.push(u, later);
    }
  };
  cte::advance_balanced<BLOCK>(cte::graph{offsets, neighbors}, frontier{offsets, now, now_begins, now_counts, capacity}, relax,
                               [=](int v) { return distances[v]; });
  staged_near.flush(near);
  staged_far.flush(later);
}

// Splits the pile by the next bound. Vertices below the previous bound have been processed as near ones.
extern "C" __global__ void __launch_bounds__(BLOCK)
sssp_split(int phase, unsigned settled, unsigned bound, const int* offsets, const unsigned* distances, int* piled, int* next,
           unsigned* next_begins, Size* next_counts, unsigned capacity, int* pile, Size* pile_size, int* far, Size* far_size,
           Size far_capacity) {
  using frontier = cte::scanned_queue<int, int>;
  const cte::near_far<int, unsigned, frontier> later{
      {offsets, next, next_begins, next_counts, capacity}, {far, far_size, far_capacity}, bound};
  const auto is_open = [=](int v) { return distances[v] >= settled && atomicExch(piled + v, phase) != phase; };
  cte::split<BLOCK>(cte::queue<int>{pile, pile_size, far_capacity}, later, is_open, [=](int v) { return distances[v]; });
}
