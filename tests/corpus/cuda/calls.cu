// Device functions: recursion, structures by value, function pointers, virtual functions, variadic printf, alloca, linkage.
#include <cassert>
#include <cstdio>

struct Vec {
  float x, y, z;
};
struct Big {
  int values[9];
  double last;
};

__device__ __noinline__ Vec cross(Vec a, Vec b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
__device__ __noinline__ Big grow(Big b, int by, bool half) {
  for (int& v : b.values) v += by;
  if (half) b.last *= 0.5;
  return b;
}
__device__ int ackermann(int m, int n) {
  return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
__device__ bool odd(unsigned);
__device__ __noinline__ bool even(unsigned n) { return n == 0 || odd(n - 1); }
__device__ __noinline__ bool odd(unsigned n) { return n != 0 && even(n - 1); }

using Op = float (*)(float, int);
__device__ __noinline__ float plus(float a, int b) { return a + b; }
__device__ __noinline__ float times(float a, int b) { return a * b; }
__device__ __noinline__ float other(float a, int b) { return __fdividef(a, b) - ackermann(2, b & 3); }
__device__ Op ops[] = {plus, times, other};

struct Shape {
  float scale;
  __device__ Shape(float s) : scale(s) {}
  __device__ virtual float area(float) const = 0;
  __device__ virtual ~Shape() {}
};
struct Disc : Shape {
  using Shape::Shape;
  __device__ float area(float r) const override { return 3.14159f * r * r * scale; }
};
struct Square : Shape {
  float more;
  __device__ Square(float s, float m) : Shape(s), more(m) {}
  __device__ float area(float r) const override { return r * r * scale + more; }
};

__device__ __attribute__((weak)) int tunable(int x) { return x + 1; }
extern "C" __device__ __attribute__((noinline)) unsigned char small(char c, unsigned short s, bool b, long long l) {
  return b ? (unsigned char)(c + s) : (unsigned char)l;
}
__device__ [[noreturn]] __noinline__ void stop(int code) {
  printf("stopped with %d\n", code);
  __trap();
}

__global__ void called(int n, Vec* v, Big* b, int* out) {
  int i = threadIdx.x;
  v[i] = cross(v[i], v[i + 1]);
  b[i] = grow(b[i], n, i & 1);
  out[i] = ackermann(2, n) + even(n) + tunable(n) + small(n, i, n > 3, 5);
  if (n < 0) stop(n);
}

__global__ void indirect(int which, float* x, int n) {
  Op op = ops[which % 3];
  for (int i = 0; i < n; ++i) x[threadIdx.x] = op(x[threadIdx.x], i);
}

__global__ void objects(int n, float* out) {
  Shape* s = threadIdx.x & 1 ? static_cast<Shape*>(new Disc(2.0f)) : new Square(3.0f, (float)n);
  out[threadIdx.x] = s->area((float)n);
  delete s;
  int* many = new int[n];
  for (int i = 0; i < n; ++i) many[i] = i;
  out[threadIdx.x + 64] = many[n / 2];
  delete[] many;
  void* raw = malloc(n);
  if (raw == nullptr) printf("out of memory: %d bytes, %s, %f %c %lld %p\n", n, "sorry", 2.5, 'x', 1LL << 40, raw);
  free(raw);
}

__global__ void checked(int n, const int* p) {
  assert(n > 0 && "n is a size");
  char* room = static_cast<char*>(__builtin_alloca(n));
  for (int i = 0; i < n; ++i) room[i] = (char)p[i];
  assert(room[n - 1] != 3);
  printf("%d\n", room[p[0] % n]);
}
