// CUDA C++ on the CPU: what a .cu file sees in place of NVIDIA's headers. It is included before
// every source.
//
// For those who write further headers (include/lib): the qualifiers (__global__, __device__,
// __shared__ ...) and launches (<<< >>>) are not macros; rewrite.py rewrites them in the learner's
// files and in include/lib/, so these may be written as ordinary CUDA C++. This file brings: vector
// types and dim3, threadIdx & co., mathematics, warp operations, atomics (templates; overload them
// for new types), all of the cudaXxx host functions, printf in kernels. cuda_cpu::in_kernel() tells
// whether a kernel is running. The header order below is the reading order.
#pragma once
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDA_CPU__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDACC_EXTENDED_LAMBDA__ 1
// NVIDIA's headers are known by these: helper_cuda.h and its like ask which have been included.
#define __CUDA_RUNTIME_H__
#define __CUDA_RUNTIME_API_H__
#define __DRIVER_TYPES_H__
#define __VECTOR_TYPES_H__
#define __VECTOR_FUNCTIONS_H__
#ifndef CUDA_CPU_RUNTIME  // the runtime's own sources
// The C library's own copies are not instrumented, so the slow checks could not see them: a program
// calls the runtime's, also where the compiler wants fortified ones without being asked (Ubuntu).
#undef _FORTIFY_SOURCE
#define _FORTIFY_SOURCE 0
#ifdef __APPLE__
#define CUDA_CPU_OWN(name) __asm__("_cuda_cpu_" name)
#else
#define CUDA_CPU_OWN(name) __asm__("cuda_cpu_" name)
#endif
extern "C" {
void* memset(void*, int, decltype(sizeof 0)) noexcept CUDA_CPU_OWN("memset");
void* memcpy(void*, const void*, decltype(sizeof 0)) noexcept CUDA_CPU_OWN("memcpy");
void* memmove(void*, const void*, decltype(sizeof 0)) noexcept CUDA_CPU_OWN("memmove");
}
#endif
#include <cassert>
#if __has_include(<bits/stl_algobase.h>)
#include <bits/stl_algobase.h>  // std::min and std::max, which nvcc brings, and no more
#endif
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits.h>
#include <new>
#include <utility>
#include "detail/types.h"
#include "detail/arithmetic.h"
#include "detail/api_types.h"
#include "detail/thread.h"
#include "detail/launch.h"
#include "detail/sync.h"
#include "detail/warp.h"
#include "detail/atomics.h"
#include "detail/scoped_atomics.h"
#include "detail/math.h"
#include "detail/api.h"
#include "detail/textures.h"
