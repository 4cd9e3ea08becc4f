// A CUPTI whose kernels are launched by `fake_launch`.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CUPTI extern "C" __attribute__((visibility("default")))

namespace {
struct __attribute__((packed, aligned(8))) Record {
  uint32_t kind; uint8_t a, b; uint16_t registers; uint32_t c[2];
  uint64_t start, end, completed;
  uint32_t device, context, stream; int32_t grid[3], block[3]; int32_t shared, dynamic; uint32_t d[3]; int64_t id;
  const char *name; void *reserved; uint64_t more[12];
};
void (*callback)(void *, uint32_t, uint32_t, const void *);
bool on;
void (*request)(uint8_t **, size_t *, size_t *);
void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t);
Record records[100];
size_t launched, given;
}  // namespace

CUPTI int cuptiGetResultString(int, const char **said) { *said = "CUPTI_ERROR_OF_TESTS"; return 0; }
CUPTI int cuptiSubscribe(void **, void (*function)(void *, uint32_t, uint32_t, const void *), void *) { callback = function; return 0; }
CUPTI int cuptiEnableCallback(uint32_t, void *, uint32_t, uint32_t) { return 0; }
CUPTI int cuptiActivityRegisterCallbacks(void (*r)(uint8_t **, size_t *, size_t *), void (*c)(void *, uint32_t, uint8_t *, size_t, size_t)) {
  request = r; complete = c;
  return 0;
}
CUPTI int cuptiActivityEnable(uint32_t kind) {
  if (getenv("FAKE_CUPTI_REFUSES")) return 39;
  on = kind == 10;
  return 0;
}
CUPTI int cuptiActivityGetNextRecord(uint8_t *buffer, size_t filled, void **record) {
  if ((given + 1) * sizeof(Record) > filled) return 12;
  *record = buffer + given++ * sizeof(Record);
  return 0;
}
CUPTI int cuptiActivityFlushAll(uint32_t) {
  uint8_t *buffer; size_t size, most;
  request(&buffer, &size, &most);
  memcpy(buffer, records, launched * sizeof(Record));
  given = 0;
  complete(nullptr, 0, buffer, size, launched * sizeof(Record));
  launched = 0;
  return 0;
}
CUPTI void fake_launch(const char *name, int device, uint64_t nanoseconds) {
  if (!on) return;
  Record r = {};
  r.kind = 10; r.registers = 32; r.start = 1000; r.end = 1000 + nanoseconds; r.device = device; r.shared = 64; r.dynamic = nanoseconds; r.name = name;
  for (int i = 0; i < 3; i++) r.grid[i] = i + 1, r.block[i] = 5;
  if (nanoseconds == 1000) r.block[0] = 25, r.block[2] = 1;
  records[launched++] = r;
}
CUPTI void fake_reset() { int entry = 0, exit = 1; callback(nullptr, 2, 164, &entry); callback(nullptr, 2, 164, &exit); }
