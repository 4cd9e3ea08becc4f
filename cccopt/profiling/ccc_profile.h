// What `ccc-nvcc --ccc-instrument` adds behind the preprocessed text of each CUDA file: where the counts of the file
// lie, and how they get to the host. It is no header to include: macros of the user are gone here, and so are ours.
//
// The pass gives `ccc_profile_head` its value: the address and the size in bytes of the counts, then those of what
// says what they count; with a zero among the four there is nothing to read, as where no kernel can be counted.
// The shared library that `cccopt profile` preloads, the agent, exports the two functions that the object below looks
// up; without it the program does nothing of this.

// An address makes cicc declare four numbers of 64 bits, `.u64 ccc_profile_head[4]`; it would be bytes without one.
static __attribute__((device)) int ccc_profile_nothing;
static __attribute__((device)) void *ccc_profile_head[4] = {&ccc_profile_nothing, 0, 0, 0};

// The name of the file, as nvcc was given it.
static const char ccc_profile_file[] = CCC_PROFILE_FILE;

extern "C" void *ccc_profile_dlsym(void *, const char *) __asm__("dlsym");

// Copies `bytes` from the address `from` on a device, 0 for the head, once all that runs there has ended. Returns the
// runtime's error. The program's own last error and device stay as they are.
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
