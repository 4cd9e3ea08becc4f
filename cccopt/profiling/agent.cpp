// The agent: what `cccopt profile` preloads into a program to take its counts and times out of it.
//
//   LD_PRELOAD            gives the program `ccc_profile_unit`, to which each file that was built with
//                         `ccc-nvcc --ccc-instrument` hands a function that reads its counts (ccc_profile.h)
//   CUDA_INJECTION64_PATH makes the driver call `InitializeInjection` in cuInit: a handler that it registers with
//                         `atexit` runs before the driver's own, which was registered earlier; one registered in a
//                         constructor would run after it and find the driver shut down
//   CCC_PROFILE_DIR       is the folder for the files; without it nothing is done
//   CCC_PROFILE_TIME=1    takes times of kernels, from CUPTI's activity records
//   CCC_PROFILE_CUPTI     lists where libcupti may be, separated by colons; `none`: do without
//
// A process writes these files; <base> is <pid>.<n>, where n distinguishes successive programs in one process:
//
//   <base>.process        lines, written as things happen: `program NAME`, `unit`, `cuda`, `failed WHY`, `untimed WHY`,
//                         `blind` (cudaDeviceReset goes unseen), `end`. With `cuda` but without `end`, the process' counts are lost.
//   <base>.<k>.counts     "cccprof1", then for each unit and device four 64-bit sizes and the data that has them: the name
//                         of the unit, that of the device, the counts, the layout
//   <base>.times          a line per kernel and device: name, launches, nanoseconds, registers, bytes of static and the
//                         most of dynamic shared memory, warps of all launches, the largest x, y and z of their blocks,
//                         name of the device, separated by tabs
//   <base>.devices        a line per device that ran kernels: name, and the attributes in `kAttributes`
//
// It is also preloaded into whatever the program starts. So it needs no C++ library, of which a program may bring
// another version, and nothing from CUDA: the few declarations below are those of cuda.h, cupti_callbacks.h and
// cupti_activity.h of CUDA 12 and 13 (docs.nvidia.com/cupti), and the libraries are looked up at run time.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORTED extern "C" __attribute__((visibility("default")))

typedef int (*Reader)(int device, void *to, unsigned long long from, unsigned long long bytes);

namespace {

// --- CUDA's driver and CUPTI, as far as they are used ---

typedef int Result;  // CUresult, CUptiResult: 0 is success

constexpr Result kNoBinary = 209;  // CUDA_ERROR_NO_BINARY_FOR_GPU, cudaErrorNoKernelImageForDevice

struct Driver {
  Result (*device_count)(int *);
  Result (*device)(int *, int);
  Result (*name)(char *, int, int);
  Result (*attribute)(int *, int, int);
  Result (*primary_state)(int, unsigned *, int *);
  Result (*current_device)(int *);
  Result (*error_name)(Result, const char **);
};

// CUpti_ActivityKernel4 and all later versions begin like this.
struct __attribute__((packed, aligned(8))) KernelRecord {
  uint32_t kind;
  uint8_t cache_config;
  uint8_t shared_config;
  uint16_t registers;
  uint32_t global_cache_requested, global_cache_executed;
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t static_shared, dynamic_shared;
  uint32_t local_per_thread, local_total;
  uint32_t correlation;
  int64_t grid_id;
  const char *name;
};
static_assert(offsetof(KernelRecord, start) == 16, "as in cupti_activity.h");
static_assert(offsetof(KernelRecord, static_shared) == 76, "as in cupti_activity.h");
static_assert(offsetof(KernelRecord, name) == 104, "as in cupti_activity.h");

struct CallbackData {  // CUpti_CallbackData
  int site;            // 0: on entry
};

enum : uint32_t {
  kConcurrentKernel = 10,      // CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: leaves kernels concurrent
  kFlushForced = 1,            // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED
  kRuntime = 2,                // CUPTI_CB_DOMAIN_RUNTIME_API
  kDeviceReset = 164,          // CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020
  kResource = 3,               // CUPTI_CB_DOMAIN_RESOURCE
  kContextCreated = 1,         // CUPTI_CBID_RESOURCE_CONTEXT_CREATED
};

typedef void (*Callback)(void *, uint32_t domain, uint32_t id, const void *data);

struct Cupti {
  Result (*subscribe)(void **, Callback, void *);
  Result (*enable_callback)(uint32_t, void *, uint32_t, uint32_t);
  Result (*register_buffers)(void (*)(uint8_t **, size_t *, size_t *),
                             void (*)(void *, uint32_t, uint8_t *, size_t, size_t));
  Result (*enable)(uint32_t);
  Result (*next)(uint8_t *, size_t, void **);
  Result (*flush)(uint32_t);
  Result (*error_name)(Result, const char **);
};

// --- the process and its files ---

struct Unit {
  Reader read;
  char *name;
  Unit *next;
};

struct KernelTime {
  char *name;
  int device;
  uint64_t launches, nanoseconds, warps;
  uint32_t registers;
  int32_t shared, dynamic_shared, block[3];
  KernelTime *next;
};

constexpr size_t kBuckets = 1024;
constexpr int kDevices = 64;
// CU_DEVICE_ATTRIBUTE_...: MULTIPROCESSOR_COUNT, CLOCK_RATE (kHz), MEMORY_CLOCK_RATE (kHz), GLOBAL_MEMORY_BUS_WIDTH (bits),
// L2_CACHE_SIZE (bytes), and per multiprocessor MAX_THREADS, MAX_SHARED_MEMORY (bytes), MAX_REGISTERS, MAX_BLOCKS
constexpr int kAttributes[] = {16, 13, 36, 37, 38, 39, 81, 82, 106};
constexpr unsigned long long kMost = 1ull << 32;  // bytes of counts or of a layout: more is not a size

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;        // protects all below but the times
pthread_mutex_t times_lock = PTHREAD_MUTEX_INITIALIZER;  // protects the times, which CUPTI's thread adds
Unit *units;
KernelTime *times[kBuckets];
pid_t owner, with_cuda;
char base[3072];
int files;
bool ended, timing;
Driver driver;
Cupti cupti;

// Sets `base`, with which the names of this process' files begin; false if there is no place for files. A forked
// process has a different one from its parent's.
bool have_base() {
  pid_t here = getpid();
  if (owner == here) return base[0] != 0;
  owner = here;
  base[0] = 0;
  files = 0;
  const char *folder = getenv("CCC_PROFILE_DIR");
  if (!folder || !*folder || strlen(folder) > sizeof base - 64) return false;
  for (int n = 0; n < 1000; n++) {
    char name[sizeof base + 16];
    snprintf(name, sizeof name, "%s/%d.%d.process", folder, (int)here, n);
    int file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0) {
      close(file);
      snprintf(base, sizeof base, "%s/%d.%d", folder, (int)here, n);
      return true;
    }
    if (errno != EEXIST) return false;
  }
  return false;
}

void note(const char *what, const char *more = nullptr) {
  if (!have_base()) return;
  char name[sizeof base + 16], line[512];
  snprintf(name, sizeof name, "%s.process", base);
  int length = snprintf(line, sizeof line, more ? "%s %s\n" : "%s\n", what, more);
  if (length >= (int)sizeof line) {
    length = sizeof line - 1;
    line[length - 1] = '\n';
  }
  int file = open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  if (write(file, line, length) < 0) { /* nowhere to report it */ }
  close(file);
}

void note_program() {
  char name[256];
  ssize_t length = readlink("/proc/self/exe", name, sizeof name - 1);
  if (length <= 0) return;
  name[length] = 0;
  const char *slash = strrchr(name, '/');
  note("program", slash ? slash + 1 : name);
}

// --- counts ---

void note_failure(const char *what, Result code) {
  const char *said = nullptr;
  char line[256];
  // The runtime's errors are the driver's, except for a few of its own.
  if (driver.error_name) driver.error_name(code, &said);
  snprintf(line, sizeof line, "%s: error %d%s%s", what, code, said ? ", " : "", said ? said : "");
  note("failed", line);
}

void write_size(FILE *file, uint64_t size) { fwrite(&size, sizeof size, 1, file); }

// Writes one unit's counts on one device to `file`.
void write_unit(FILE *file, const Unit &unit, int device, const char *name) {
  Reader read = unit.read;
  unsigned long long head[4] = {0, 0, 0, 0};
  Result failed = read(device, head, 0, sizeof head);
  if (failed == kNoBinary) return;  // nothing of this unit can have run there
  if (failed) {
    note_failure("reading the counts", failed);
    return;
  }
  auto [counts_at, counts_size, layout_at, layout_size] = head;
  if (!counts_at || !counts_size || !layout_at || !layout_size) return;  // it holds no kernels
  if (counts_size > kMost || layout_size > kMost) return;
  char *counts = static_cast<char *>(malloc(counts_size)), *layout = static_cast<char *>(malloc(layout_size));
  failed = counts && layout ? 0 : 2;  // CUDA_ERROR_OUT_OF_MEMORY
  if (!failed) failed = read(device, counts, counts_at, counts_size);
  if (!failed) failed = read(device, layout, layout_at, layout_size);
  if (failed) {
    note_failure("reading the counts", failed);
  } else {
    write_size(file, strlen(unit.name));
    write_size(file, strlen(name));
    write_size(file, counts_size);
    write_size(file, layout_size);
    fwrite(unit.name, 1, strlen(unit.name), file);
    fwrite(name, 1, strlen(name), file);
    fwrite(counts, 1, counts_size, file);
    fwrite(layout, 1, layout_size, file);
  }
  free(counts);
  free(layout);
}

// Writes the counts of the unit `only` (null: of all units) on the device `one` (-1: on all) to a new file.
void write_counts(Reader only, int one) {
  if (with_cuda != getpid() || !units || !driver.device_count || !have_base()) return;
  char aside[sizeof base + 48], name[sizeof base + 48];
  snprintf(aside, sizeof aside, "%s.%d.part", base, files);
  snprintf(name, sizeof name, "%s.%d.counts", base, files++);
  FILE *file = fopen(aside, "wbe");
  if (!file) {
    note("failed", "no file can be written");
    return;
  }
  fwrite("cccprof1", 1, 8, file);
  int devices = 0;
  driver.device_count(&devices);
  for (int number = 0; number < devices; number++) {
    unsigned flags = 0;
    int device = 0, active = 0;
    char shown[256] = "";
    if (one >= 0 && number != one) continue;
    if (driver.device(&device, number) || driver.primary_state(device, &flags, &active) || !active) continue;
    driver.name(shown, sizeof shown, device);
    for (Unit *unit = units; unit; unit = unit->next) {
      if (only && unit->read != only) continue;
      write_unit(file, *unit, number, shown);  // if one fails, the next may not
    }
  }
  bool failed = ferror(file);
  if (fclose(file) || failed || rename(aside, name)) note("failed", "a file cannot be written");
}

// --- times ---

void add_time(const KernelRecord &record) {
  if (!record.name) return;
  size_t hash = 5381 + record.device;
  for (const char *c = record.name; *c; c++) hash = hash * 33 + static_cast<unsigned char>(*c);
  KernelTime **place = &times[hash % kBuckets];
  while (*place && ((*place)->device != (int)record.device || strcmp((*place)->name, record.name))) place = &(*place)->next;
  if (!*place) {
    KernelTime *added = static_cast<KernelTime *>(calloc(1, sizeof(KernelTime)));
    if (!added) return;
    added->name = strdup(record.name);
    if (!added->name) {
      free(added);
      return;
    }
    added->device = record.device;
    *place = added;
  }
  KernelTime *kernel = *place;
  kernel->launches++;
  if (record.end > record.start) kernel->nanoseconds += record.end - record.start;
  kernel->registers = record.registers;
  kernel->shared = record.static_shared;
  if (kernel->dynamic_shared < record.dynamic_shared) kernel->dynamic_shared = record.dynamic_shared;
  int32_t threads = record.block[0] * record.block[1] * record.block[2];
  uint64_t blocks = (uint64_t)record.grid[0] * record.grid[1] * record.grid[2];
  kernel->warps += blocks * ((threads + 31) / 32);
  for (int i = 0; i < 3; i++)
    if (kernel->block[i] < record.block[i]) kernel->block[i] = record.block[i];
}

void give_buffer(uint8_t **buffer, size_t *size, size_t *most) {
  void *memory = nullptr;
  *size = posix_memalign(&memory, 8, 4 << 20) == 0 ? 4 << 20 : 0;
  *buffer = static_cast<uint8_t *>(memory);
  *most = 0;
}

void take_buffer(void *, uint32_t, uint8_t *buffer, size_t, size_t filled) {
  pthread_mutex_lock(&times_lock);
  void *record = nullptr;
  while (filled && cupti.next(buffer, filled, &record) == 0) {
    if (*static_cast<uint32_t *>(record) == kConcurrentKernel) add_time(*static_cast<KernelRecord *>(record));
  }
  pthread_mutex_unlock(&times_lock);
  free(buffer);
}

void write_devices(const bool *used) {
  char aside[sizeof base + 48], name[sizeof base + 48];
  snprintf(aside, sizeof aside, "%s.devices.part", base);
  snprintf(name, sizeof name, "%s.devices", base);
  FILE *file = fopen(aside, "we");
  if (!file) return;
  for (int i = 0; i < kDevices; i++) {
    char shown[256] = "";
    int device = 0;
    if (!used[i] || !driver.device || driver.device(&device, i) || driver.name(shown, sizeof shown, device)) continue;
    fputs(shown, file);
    for (int attribute : kAttributes) {
      int value = 0;
      if (driver.attribute(&value, attribute, device)) value = 0;
      fprintf(file, "\t%d", value);
    }
    fputc('\n', file);
  }
  if (fclose(file) || rename(aside, name)) unlink(aside);  // times are usable without it
}

void write_times() {
  if (!timing || with_cuda != getpid() || !have_base()) return;
  Result failed = cupti.flush(kFlushForced);
  if (failed) note("untimed", "CUPTI does not give the times of all kernels");
  char aside[sizeof base + 48], name[sizeof base + 48];
  snprintf(aside, sizeof aside, "%s.times.part", base);
  snprintf(name, sizeof name, "%s.times", base);
  bool used[kDevices] = {};
  FILE *file = fopen(aside, "we");
  if (!file) return;
  pthread_mutex_lock(&times_lock);
  for (KernelTime *first : times) {
    for (KernelTime *kernel = first; kernel; kernel = kernel->next) {
      char shown[256] = "";
      int device = 0;
      if (driver.device && !driver.device(&device, kernel->device)) driver.name(shown, sizeof shown, device);
      if (kernel->device >= 0 && kernel->device < kDevices) used[kernel->device] = true;
      fprintf(file, "%s\t%llu\t%llu\t%u\t%d\t%d\t%llu\t%d\t%d\t%d\t%s\n", kernel->name, (unsigned long long)kernel->launches,
              (unsigned long long)kernel->nanoseconds, kernel->registers, kernel->shared, kernel->dynamic_shared,
              (unsigned long long)kernel->warps, kernel->block[0], kernel->block[1], kernel->block[2], shown);
    }
  }
  pthread_mutex_unlock(&times_lock);
  if (fclose(file) || rename(aside, name)) note("untimed", "a file cannot be written");
  else write_devices(used);
}

void finish();

// CUPTI reports an event. `cudaDeviceReset` is about to destroy the current context and everything counted in it; the
// callback at the entry of a call may call the runtime.
void on_call(void *, uint32_t domain, uint32_t id, const void *data) {
  if (domain == kResource && id == kContextCreated) {
    // Handlers registered later run earlier: the driver has registered its own by now.
    static int registered;
    if (__atomic_fetch_add(&registered, 1, __ATOMIC_RELAXED) < 8) atexit(finish);
  }
  if (domain != kRuntime || id != kDeviceReset || static_cast<const CallbackData *>(data)->site != 0) return;
  pthread_mutex_lock(&lock);
  int device = -1;
  if (!ended && driver.current_device && driver.current_device(&device) == 0) write_counts(nullptr, device);
  pthread_mutex_unlock(&lock);
}

// --- starting and ending ---

template <typename Function>
bool find(void *library, const char *name, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool find_driver() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!library) library = RTLD_DEFAULT;
  find(library, "cuGetErrorName", driver.error_name);
  find(library, "cuCtxGetDevice", driver.current_device);
  return find(library, "cuDeviceGet", driver.device) && find(library, "cuDeviceGetName", driver.name) &&
         find(library, "cuDeviceGetAttribute", driver.attribute) &&
         find(library, "cuDevicePrimaryCtxGetState", driver.primary_state) &&
         find(library, "cuDeviceGetCount", driver.device_count);
}

void *open_cupti() {
  const char *named = getenv("CCC_PROFILE_CUPTI");
  if (named && !strcmp(named, "none")) return nullptr;
  static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
  // The program may have loaded one of its own (PyTorch does), and two do not work together.
  for (const char *name : names) {
    if (void *library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
  }
  char file[4096];
  for (const char *from = named; from && *from;) {
    size_t length = strcspn(from, ":");
    if (length && length < sizeof file) {
      memcpy(file, from, length);
      file[length] = 0;
      if (void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL)) return library;
    }
    from += length + (from[length] == ':');
  }
  for (const char *name : names) {
    if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

void note_untimed(const char *what, Result code) {
  const char *said = nullptr;
  char line[256];
  if (cupti.error_name) cupti.error_name(code, &said);
  snprintf(line, sizeof line, "%s gives error %d%s%s", what, code, said ? ", " : "", said ? said : "");
  note("untimed", line);
}

void start_cupti() {
  const char *wanted = getenv("CCC_PROFILE_TIME");
  bool times_wanted = wanted && !strcmp(wanted, "1");
  void *library = open_cupti();
  if (!library) {
    note("blind");
    if (times_wanted) note("untimed", "there is no libcupti");
    return;
  }
  find(library, "cuptiGetResultString", cupti.error_name);
  void *subscriber = nullptr;
  // Without this, only what a program counts before cudaDeviceReset is lost.
  if (find(library, "cuptiSubscribe", cupti.subscribe) && find(library, "cuptiEnableCallback", cupti.enable_callback) &&
      cupti.subscribe(&subscriber, on_call, nullptr) == 0) {
    cupti.enable_callback(1, subscriber, kRuntime, kDeviceReset);
    cupti.enable_callback(1, subscriber, kResource, kContextCreated);
  } else {
    note("blind");
  }
  if (!times_wanted) return;
  if (!(find(library, "cuptiActivityRegisterCallbacks", cupti.register_buffers) &&
        find(library, "cuptiActivityEnable", cupti.enable) &&
        find(library, "cuptiActivityGetNextRecord", cupti.next) &&
        find(library, "cuptiActivityFlushAll", cupti.flush))) {
    note("untimed", "this libcupti has no activity records");
    return;
  }
  Result failed = cupti.register_buffers(give_buffer, take_buffer);
  if (!failed) failed = cupti.enable(kConcurrentKernel);
  if (failed) {
    note_untimed("cuptiActivityEnable", failed);
    return;
  }
  timing = true;
}

void finish() {
  // A process forked while its parent used CUDA cannot use CUDA: what it inherited is the parent's.
  if (with_cuda != getpid()) return;
  pthread_mutex_lock(&lock);
  if (!ended) {
    ended = true;
    write_counts(nullptr, -1);
    write_times();
    note("end");
  }
  pthread_mutex_unlock(&lock);
}

}  // namespace

// A file of the program, or of a library that it loads, registers the function that reads its counts.
EXPORTED void ccc_profile_unit(Reader read, const char *name) {
  pthread_mutex_lock(&lock);
  Unit *unit = static_cast<Unit *>(malloc(sizeof(Unit)));
  char *copy = strdup(name);
  if (unit && copy) {
    if (!units && have_base()) {
      note_program();
      note("unit");
    }
    *unit = Unit{read, copy, units};
    units = unit;
  }
  pthread_mutex_unlock(&lock);
}

// The file's code is about to be unloaded (dlclose), or the program ends.
EXPORTED void ccc_profile_unit_gone(Reader read, const char *) {
  pthread_mutex_lock(&lock);
  if (!ended) write_counts(read, -1);
  for (Unit **unit = &units; *unit; unit = &(*unit)->next) {
    if ((*unit)->read == read) {
      Unit *gone = *unit;
      *unit = gone->next;
      free(gone->name);
      free(gone);
      break;
    }
  }
  pthread_mutex_unlock(&lock);
}

// Called by the driver in cuInit.
EXPORTED int InitializeInjection(void) {
  pthread_mutex_lock(&lock);
  bool first = with_cuda != getpid() && have_base();
  if (first) {
    with_cuda = getpid();
    ended = false;
    if (!units) note_program();
    note("cuda");
  }
  pthread_mutex_unlock(&lock);
  // Not under our lock: `dlopen` waits for other threads that load a library, whose unit may be waiting for our lock.
  if (first) {
    if (!find_driver()) note("failed", "the CUDA driver lacks what reading counts needs");
    start_cupti();
    atexit(finish);
    at_quick_exit(finish);
  }
  return 1;
}
