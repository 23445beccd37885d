// CUB on the CPU: warp and block collectives for kernels, and whole-array algorithms with the
// two-phase interface.
//
// The collectives are written with shared memory and barriers as their descriptions say, and so
// need the same barriers between two uses of one TempStorage as on the GPU. Sums of floats may be
// added in another order than the GPU's.
#pragma once
#include <chrono>  // the real one brings these along, and programs count on it
#include <mutex>
#include "../thrust/version.h"
#include "adjacent_difference.cuh"
#include "block.cuh"
#include "device.cuh"
#include "device_sort.cuh"
#include "util_allocator.cuh"
