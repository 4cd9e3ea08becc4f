/* Plain C for the NVPTX back end: device functions alone, with C's linkage and a declared global. */
struct pair { int a; double b; };
static const short steps[] = {3, 1, 4, 1, 5, 9, 2, 6};
extern int outside(const struct pair *, int);
int counter;
double values[4] = {0.5, 0.25};
static const char *names[] = {"one", "two"};

__attribute__((noinline)) struct pair made(int a, double b) {
  struct pair p = {a + steps[a & 7], b * values[a & 3]};
  return p;
}
int length(const char *s) {
  int n = 0;
  while (*s++) n++;
  return n;
}
int walk(int n) {
  struct pair p = made(n, 2.0);
  counter += length(names[n & 1]);
  return n > 0 ? walk(n - 1) + outside(&p, (int)p.b) : counter;
}
unsigned long long mixed(unsigned char a, short b, float c, unsigned long long d) {
  return (a << 3) + b * (int)c + (d >> 7) + __builtin_bswap32((unsigned)d) + (d > 5 ? ~d : d % 3);
}
