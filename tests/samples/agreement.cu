// Prints what the host side of bfs.cu generates, so that a test can compare it with workload.py without a GPU.
#define main sample_main
#include "bfs.cu"
#undef main

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const Graph graph = rmat(graph500(std::atoi(argv[1]), std::atoi(argv[2]), uint32_t(std::strtoul(argv[3], nullptr, 10))));
  std::printf("%d\n", busiest(graph));
  for (int offset : graph.row) std::printf("%d ", offset);
  std::printf("\n");
  for (int neighbour : graph.neighbours) std::printf("%d ", neighbour);
  std::printf("\n");
  for (int weight : graph.weights) std::printf("%d ", weight);
  std::printf("\n");
  return 0;
}
