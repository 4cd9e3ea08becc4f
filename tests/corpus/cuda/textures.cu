// Textures and surfaces, queries among them, through objects.
__global__ void sampled(cudaTextureObject_t t, cudaTextureObject_t u, float* out, int4* out4, float x, float y) {
  int i = threadIdx.x;
  float r = tex1D<float>(t, x) + tex1Dfetch<float>(t, i) + tex2D<float>(t, x, y) + tex3D<float>(t, x, y, 0.5f);
  r += tex1DLayered<float>(t, x, 2) + tex2DLayered<float>(t, x, y, 3) + texCubemap<float>(t, x, y, 1.0f);
  r += tex2DLod<float>(t, x, y, 1.5f) + tex2DGrad<float>(t, x, y, make_float2(1, 0), make_float2(0, 1));
  r += texCubemapLayered<float>(t, x, y, 1.0f, 2) + tex3DLod<float>(t, x, y, 0.25f, 2.0f) + tex1DLod<float>(t, x, 0.5f);
  float4 g = tex2Dgather<float4>(t, x, y, 1);
  bool resident = false;
  r += tex2D<float>(t, x, y, &resident);
  int4 v = tex2D<int4>(u, x, y);
  uchar4 w = tex2D<uchar4>(u, x, y);
  short2 s = tex1Dfetch<short2>(u, i);
  out[i] = r + g.x + g.w + resident + w.x + s.y;
  out4[i] = v;
}

__global__ void surfaces(cudaSurfaceObject_t s, int* out, float4* out4) {
  int i = threadIdx.x;
  int a = surf1Dread<int>(s, i * 4) + surf2Dread<unsigned char>(s, i, 2) + surf3Dread<short>(s, 2 * i, 1, 2, cudaBoundaryModeZero);
  out4[i] = surf2Dread<float4>(s, i * 16, 3, cudaBoundaryModeClamp);
  a += (int)surf2DLayeredread<long long>(s, i * 8, 1, 4) + surfCubemapread<uint2>(s, i * 8, 1, 2).x;
  surf1Dwrite(a, s, i * 4);
  surf2Dwrite(make_float4(1, 2, 3, a), s, i * 16, 2);
  surf3Dwrite((unsigned char)a, s, i, 1, 2, cudaBoundaryModeZero);
  surf1DLayeredwrite(make_ushort2(1, 2), s, i * 4, 7);
  out[i] = a;
}

__global__ void queries(cudaTextureObject_t t, int* out) {
  int w, h, levels;
  asm("txq.width.b32 %0, [%1];" : "=r"(w) : "l"(t));
  asm("txq.height.b32 %0, [%1];" : "=r"(h) : "l"(t));
  asm("txq.level.width.b32 %0, [%1], 1;" : "=r"(levels) : "l"(t));
  asm("suq.depth.b32 %0, [%1];" : "=r"(out[3]) : "l"(t));
  out[threadIdx.x] = w + h + levels;
}
