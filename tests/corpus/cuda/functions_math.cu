// The mathematical library: slow paths, tables in memory, special functions, fast versions.
__global__ void single(int n, const float* x, float* out) {
  int i = threadIdx.x;
  if (i >= n) return;
  float a = x[i], r = 0.0f, s, c;
  r += sinf(a) + cosf(a) + tanf(a) + asinf(a) + atan2f(a, 2.0f) + expf(a) + exp2f(a) + logf(a) + log1pf(a);
  sincosf(a, &s, &c);
  r += s * c + powf(a, 1.7f) + cbrtf(a) + erff(a) + tgammaf(a) + fmodf(a, 3.0f) + hypotf(a, r) + tanhf(a);
  r += __sinf(a) + __cosf(a) + __expf(a) + __logf(a) + __powf(a, r) + __fsqrt_rn(a) + rsqrtf(a) + ldexpf(a, i);
  int e;
  r += frexpf(a, &e);
  r += (float)e + (float)ilogbf(a) + nextafterf(a, c) + remainderf(a, 0.3f) + norm3df(a, s, 2.0f);
  out[i] = r;
}

__global__ void twice(int n, const double* x, double* out) {
  int i = threadIdx.x;
  if (i >= n) return;
  double a = x[i];
  out[i] = sin(a) + cos(a) + pow(a, 1.7) + erf(a) + exp(a) + log(a) + lgamma(a) + fma(a, a, 2.0) + fmod(a, 0.7) + j0(a);
}
