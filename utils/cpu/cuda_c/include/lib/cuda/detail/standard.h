// cuda::std: libcu++ promises the standard library's names in kernels too, and here a kernel is
// host code, so they are those of the C++ library itself.
#pragma once
#include "cuda_runtime.h"

#define CCCL_VERSION 3000000

namespace cuda {
namespace std {
using namespace ::std;
}
}  // namespace cuda
