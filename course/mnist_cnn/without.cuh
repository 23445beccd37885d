// The trainer's kernels without one of their optimizations, to measure what it brings (race.py, the waterfall): included in
// front of trainer.cu, it puts a plain function in the place of an instruction. The results stay the same.
#pragma once
#ifdef NO_TENSOR_CORES
#define multiply_add multiply_add_on_tensor_cores
#endif
#ifdef PLAIN_COPIES
#define copy_16_async copy_16_without_registers
#endif
#include "kernels/tensor_core.cuh"

#ifdef NO_TENSOR_CORES
#undef multiply_add
// c += a b with the ordinary units: the lanes exchange what they hold by shuffles, then each adds up its four results.
__device__ inline void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  int group = threadIdx.x % 32 / 4, pair = threadIdx.x % 4 * 2;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    unsigned row[2][2], column[2][2];  // upper and lower row, left and right column; each in two halves of the sum
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      row[0][half] = __shfl_sync(~0u, a[half * 2], group * 4 + i);
      row[1][half] = __shfl_sync(~0u, a[half * 2 + 1], group * 4 + i);
      column[0][half] = __shfl_sync(~0u, half ? b1 : b0, pair * 4 + i);
      column[1][half] = __shfl_sync(~0u, half ? b1 : b0, pair * 4 + 4 + i);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float2 x = unpack(row[e / 2][half]), y = unpack(column[e % 2][half]);
        c[e] += x.x * y.x + x.y * y.y;
      }
  }
}
#endif

#ifdef PLAIN_COPIES
#undef copy_16_async
// Through registers: the warp waits for the load before it can store.
__device__ inline void copy_16_async(void* to_shared, const void* from, bool wanted = true) {
  *static_cast<uint4*>(to_shared) = wanted ? *static_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
}
#endif
