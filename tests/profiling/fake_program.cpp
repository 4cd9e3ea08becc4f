// A program that has the files of another, a driver and kernels without any of them: `fake_program WORD...`, where each
// word is something that it does. The driver's functions that the agent looks up are its own.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DRIVER extern "C" __attribute__((visibility("default"), used))

namespace {

typedef int (*Reader)(int, void *, unsigned long long, unsigned long long);
struct Records { uint64_t counts[2]; char layout[8]; };
Records memory[2][2] = {{{{1, 2}, "layoutA"}, {{10, 20}, "layoutB"}}, {{{100, 200}, "layoutA"}, {{7, 8}, "layoutB"}}};
int error = 0, devices = 1;

int read_unit(int unit, int device, void *to, unsigned long long from, unsigned long long bytes) {
  Records &here = memory[device][unit];
  unsigned long long head[4] = {(unsigned long long)here.counts, 16, (unsigned long long)here.layout, 7};
  memcpy(to, from ? (void *)from : head, bytes);
  return error;
}
int first(int device, void *to, unsigned long long from, unsigned long long bytes) { return read_unit(0, device, to, from, bytes); }
int second(int device, void *to, unsigned long long from, unsigned long long bytes) { return read_unit(1, device, to, from, bytes); }
int refused = 0;
int third(int, void *, unsigned long long, unsigned long long) { return refused; }
int empty(int, void *to, unsigned long long, unsigned long long bytes) { memset(to, 0, bytes); return 0; }

void tell(const char *what, Reader reader) {
  const char *file = reader == first ? "a.cu" : "b.cu";
  if (void *agent = dlsym(RTLD_DEFAULT, what)) ((void (*)(Reader, const char *))agent)(reader, file);
}

void (*launched)(const char *, int, uint64_t), (*reset)();

void cuda_starts() {
  const char *agent = getenv("CUDA_INJECTION64_PATH");
  void *library = agent ? dlopen(agent, RTLD_NOW) : nullptr;
  if (library) ((int (*)())dlsym(library, "InitializeInjection"))();
  // Of the libcupti of the tests, where the agent has loaded it.
  void *cupti = dlopen("libcupti_of_tests.so", RTLD_NOW | RTLD_NOLOAD);
  if (!cupti) return;
  launched = (void (*)(const char *, int, uint64_t))dlsym(cupti, "fake_launch");
  reset = (void (*)())dlsym(cupti, "fake_reset");
}

// CUDA starts while another thread loads a library.
void cuda_starts_beside(const char *library) {
  int (*start)() = (int (*)())dlsym(RTLD_DEFAULT, "InitializeInjection");
  pthread_t other;
  pthread_create(&other, nullptr, [](void *name) { return dlopen((const char *)name, RTLD_NOW); }, (void *)library);
  usleep(100000);
  if (start) start();
  pthread_join(other, nullptr);
}

}  // namespace

DRIVER int cuDeviceGetCount(int *count) { *count = devices; return 0; }
DRIVER int cuDeviceGet(int *device, int number) { *device = number; return 0; }
DRIVER int cuDeviceGetName(char *name, int size, int device) { snprintf(name, size, "GPU %d", device); return 0; }
DRIVER int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = 1000 * device + attribute; return 0; }
DRIVER int cuDevicePrimaryCtxGetState(int, unsigned *flags, int *active) { *flags = 0; *active = 1; return 0; }
DRIVER int cuCtxGetDevice(int *device) { *device = 0; return 0; }
DRIVER int cuGetErrorName(int code, const char **name) { *name = code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "?"; return 0; }

int main(int count, char **words) {
  for (int i = 1; i < count; i++) {
    const char *word = words[i];
    if (!strcmp(word, "unit")) tell("ccc_profile_unit", first);
    else if (!strcmp(word, "another")) tell("ccc_profile_unit", second);
    else if (!strcmp(word, "empty")) tell("ccc_profile_unit", empty);
    else if (!strncmp(word, "beside=", 7)) cuda_starts_beside(word + 7);
    else if (!strncmp(word, "refuses-", 8)) { refused = atoi(word + 8); tell("ccc_profile_unit", third); }
    else if (!strcmp(word, "unload")) tell("ccc_profile_unit_gone", second);
    else if (!strcmp(word, "cuda")) cuda_starts();
    else if (!strcmp(word, "two-devices")) devices = 2;
    else if (!strcmp(word, "fault")) error = 700;
    else if (!strcmp(word, "launch") && launched) { launched("_Z1fPi", 0, 1000); launched("_Z1fPi", 0, 500); launched("cub_kernel", 0, 7); launched("_Z1fPi__ccc_counted", 1, 9); }
    else if (!strcmp(word, "reset") && reset) { reset(); memory[0][0].counts[0] = 50; }
    else if (!strcmp(word, "fork")) { if (pid_t child = fork()) waitpid(child, nullptr, 0); else exit(0); }
    else if (!strcmp(word, "fork-and-go-on")) { if (pid_t child = fork()) { waitpid(child, nullptr, 0); return 0; } }
    else if (!strcmp(word, "print")) { puts(getenv("CCC_PROFILE_COUNT") ? getenv("CCC_PROFILE_COUNT") : "-"); fflush(stdout); }
    else if (!strcmp(word, "echo")) { for (int c; (c = getchar()) != EOF;) fputc(c, stderr); }
    else if (!strcmp(word, "kill")) raise(SIGKILL);
    else if (!strcmp(word, "_exit")) _exit(0);
    else if (!strcmp(word, "quick_exit")) quick_exit(0);
    else if (!strcmp(word, "throw")) throw 1;
    else if (!strcmp(word, "exit3")) exit(3);
  }
}
