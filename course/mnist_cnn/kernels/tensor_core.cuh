// The instructions of the tensor cores and of the copies that feed them, one small function each.
//
// On a GPU each function is one PTX instruction. The CPU runtime has no PTX, so there the same exchange between the lanes
// of a warp is spelt out with shuffles: slow, but it gives the same numbers, and it says exactly what the instruction does.
// Source of the layouts: PTX ISA, "Matrix fragments for mma.m16n8k16" and "ldmatrix".
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800 && !defined(__CUDA_CPU__)
#error "bfloat16 on tensor cores needs compute capability 8.0 (Ampere) or newer"
#endif

// What tensor cores multiply: bfloat16, which has float's range and 8 bits of precision. Built with -DHALF_NUMBERS it is
// half precision instead (11 bits): a mistake in a formula stays as large as it was, a rounding error becomes 8 times smaller.
#ifdef HALF_NUMBERS
typedef __half number;
#else
typedef __nv_bfloat16 number;
#endif

// Two numbers in a register; the first one in the lower half.
__device__ inline unsigned pack(float first, float second) {
#ifdef HALF_NUMBERS
  __half2 both = __floats2half2_rn(first, second);
#else
  __nv_bfloat162 both = __floats2bfloat162_rn(first, second);
#endif
  return *reinterpret_cast<unsigned*>(&both);
}

__device__ inline float2 unpack(unsigned both) {
#ifdef HALF_NUMBERS
  return __half22float2(*reinterpret_cast<__half2*>(&both));
#else
  return make_float2(__uint_as_float(both << 16), __uint_as_float(both & 0xffff0000u));  // bfloat16 is float's upper half
#endif
}

// c += a b for the whole warp: a is 16 x 16, b is 16 x 8, c is 16 x 8 and stays in float.
// With group = lane / 4 and pair = lane % 4 * 2 a lane holds
//   a[0], a[1]: row group, group + 8 at columns pair, pair + 1;   a[2], a[3]: the same rows at columns pair + 8, pair + 9
//   b0: column group at rows pair, pair + 1;                       b1: the same column at rows pair + 8, pair + 9
//   c[0], c[1]: row group at columns pair, pair + 1;               c[2], c[3]: row group + 8 at the same columns
__device__ inline void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#ifdef __CUDA_CPU__
  typedef unsigned long long two;
  int group = threadIdx.x % 32 / 4, pair = threadIdx.x % 4 * 2;
  two upper = a[0] | two(a[2]) << 32, lower = a[1] | two(a[3]) << 32, b = b0 | two(b1) << 32;
  for (int i = 0; i < 4; ++i) {
    two row[2] = {__shfl_sync(~0u, upper, group * 4 + i), __shfl_sync(~0u, lower, group * 4 + i)};
    two column[2] = {__shfl_sync(~0u, b, pair * 4 + i), __shfl_sync(~0u, b, pair * 4 + 4 + i)};
    for (int half = 0; half < 64; half += 32)
      for (int e = 0; e < 4; ++e) {
        float2 x = unpack(unsigned(row[e / 2] >> half)), y = unpack(unsigned(column[e % 2] >> half));
        c[e] += x.x * y.x + x.y * y.y;
      }
  }
#elif defined(HALF_NUMBERS)
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// Load four 8 x 8 matrices of numbers from shared memory. Lane i gives the address of row i % 8 of matrix i / 8 (16 bytes);
// of matrix m it gets in r[m] what stands in row lane / 4 at columns lane % 4 * 2 and the next: the layout that
// multiply_add wants for a, and for b where a row of shared memory holds a column of b.
__device__ inline void load_matrices(unsigned (&r)[4], const number* row) {
#ifdef __CUDA_CPU__
  for (int m = 0; m < 4; ++m) {
    const number* from = __shfl_sync(~0u, row, m * 8 + threadIdx.x % 32 / 4);
    memcpy(&r[m], from + threadIdx.x % 4 * 2, 4);
  }
#else
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
#endif
}

// The same with each matrix transposed on the way: a lane gets column lane / 4 at rows lane % 4 * 2 and the next.
__device__ inline void load_matrices_transposed(unsigned (&r)[4], const number* row) {
#ifdef __CUDA_CPU__
  for (int m = 0; m < 4; ++m) {
    const number* first = __shfl_sync(~0u, row, m * 8 + threadIdx.x % 4 * 2);
    const number* second = __shfl_sync(~0u, row, m * 8 + threadIdx.x % 4 * 2 + 1);
    unsigned short both[2];
    memcpy(&both[0], first + threadIdx.x % 32 / 4, 2);
    memcpy(&both[1], second + threadIdx.x % 32 / 4, 2);
    r[m] = both[0] | unsigned(both[1]) << 16;
  }
#else
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
#endif
}

// Start a copy of 16 bytes from global to shared memory that goes through no register; zeros where `wanted` is false.
__device__ inline void copy_16_async(void* to_shared, const void* from, bool wanted = true) {
#ifdef __CUDA_CPU__
  if (wanted) memcpy(to_shared, from, 16);
  else memset(to_shared, 0, 16);
#else
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to_shared));
  int bytes = wanted ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
#endif
}

// Close a group of copies; wait until at most `pending` of this thread's groups are still on their way.
__device__ inline void commit_copies() {
#ifndef __CUDA_CPU__
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int pending>
__device__ inline void wait_for_copies() {
#ifndef __CUDA_CPU__
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

// Sum over the lanes whose numbers differ in the bits of `lanes` (a mask of lane-number bits); every lane gets it.
template <class T>
__device__ inline T sum_over_lanes(T value, int lanes) {
  for (int bit = 1; bit < 32; bit *= 2)
    if (lanes & bit) value += __shfl_xor_sync(~0u, value, bit);
  return value;
}
