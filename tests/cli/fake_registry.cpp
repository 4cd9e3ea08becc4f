// Preloaded before a shared CUDA runtime: prints the names by which a program registers its kernels.
#include <dlfcn.h>
#include <stdio.h>

typedef void (*Register)(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);

extern "C" void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *a, void *b, void *c, void *d, int *e) {
  fprintf(stderr, "registered %s\n", name);
  ((Register)dlsym(RTLD_NEXT, "__cudaRegisterFunction"))(handle, host, device, name, limit, a, b, c, d, e);
}
