// What `ccc-nvcc --ccc-instrument` appends to the preprocessed text of each CUDA file: where the counts of the file
// are, and how they get to the host. It is not a header to include: no macros, the user's or ours, are defined here.
//
// The pass sets `ccc_profile_head` to the address and the size in bytes of the counts, then those of the layout, which
// says what they count. If one of the four is zero, there is nothing to read, for example if no kernel can be counted.
// The agent, a shared library that `cccopt profile` preloads, exports the two functions that the object below looks up.
// Without the agent, the program does none of this.

// An address makes cicc declare four 64-bit numbers, `.u64 ccc_profile_head[4]`; without one it would declare bytes.
static __attribute__((device)) int ccc_profile_nothing;
static __attribute__((device)) void *ccc_profile_head[4] = {&ccc_profile_nothing, 0, 0, 0};

// The name of the file, as it was given to nvcc.
static const char ccc_profile_file[] = CCC_PROFILE_FILE;

extern "C" void *ccc_profile_dlsym(void *, const char *) __asm__("dlsym");

// Copies `bytes` bytes from the address `from` (0: the head) on a device, once everything running there has ended.
// Returns the runtime's error. The program's own last error and device stay as they are.
static int ccc_profile_read(int device, void *to, unsigned long long from, unsigned long long bytes) {
  int before = -1;
  const bool well = cudaPeekAtLastError() == cudaSuccess;
  cudaError_t failed = cudaGetDevice(&before);
  if (failed == cudaSuccess && before != device) failed = cudaSetDevice(device);
  if (failed == cudaSuccess) failed = cudaDeviceSynchronize();
  if (failed == cudaSuccess) {
    failed = from == 0 ? cudaMemcpyFromSymbol(to, ccc_profile_head, bytes)
                       : cudaMemcpy(to, (const void *)from, bytes, cudaMemcpyDeviceToHost);
  }
  if (before >= 0 && before != device) (void)cudaSetDevice(before);
  if (well && failed != cudaSuccess) (void)cudaGetLastError();
  return (int)failed;
}

namespace {
struct ccc_profile_unit_of_this_file {
  typedef int (*reader)(int, void *, unsigned long long, unsigned long long);
  ccc_profile_unit_of_this_file() { tell("ccc_profile_unit"); }
  ~ccc_profile_unit_of_this_file() { tell("ccc_profile_unit_gone"); }
  static void tell(const char *function) {
    void *agent = ccc_profile_dlsym((void *)0, function);
    if (agent != (void *)0) ((void (*)(reader, const char *))agent)(&ccc_profile_read, ccc_profile_file);
  }
};
ccc_profile_unit_of_this_file ccc_profile_this_file;
}
