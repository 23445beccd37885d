// What nvcc includes unasked in front of every file, as far as device code can use it.
#pragma once
#include <min_max.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#if __has_include(<cuda/std/cstdint>)  // else CUDA's C++ library is not installed
#include <climits>
#include <cstddef>
#include <cstdint>
#endif
