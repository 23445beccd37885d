// CUDA's arrays: pitched memory here.
#pragma once
#include <algorithm>
#include "internal.h"

namespace cuda_cpu {
inline int channels_of(const cudaChannelFormatDesc& d) {
    return (d.x > 0) + (d.y > 0) + (d.z > 0) + (d.w > 0);
}
inline size_t element_bytes(const cudaChannelFormatDesc& d) {
    return size_t(d.x + d.y + d.z + d.w) / 8;
}
inline bool is_valid(const cudaChannelFormatDesc& d) {
    int n = channels_of(d);
    bool same = (!d.y || d.y == d.x) && (!d.z || d.z == d.x) && (!d.w || d.w == d.x);
    bool known = d.x == 8 || d.x == 16 || d.x == 32;
    if (d.f == cudaChannelFormatKindFloat && d.x == 8)
        return false;
    return known && same && (n == 1 || n == 2 || n == 4) && d.f <= cudaChannelFormatKindFloat;
}

struct Array {
    cudaChannelFormatDesc desc;
    cudaExtent extent;  // as asked for: a height of 0 means one dimension
    unsigned flags;
    char* memory;
    bool layered() const {
        return flags & cudaArrayLayered;
    }
    size_t rows() const {
        return std::max<size_t>(1, extent.height);
    }
    size_t slices() const {
        return std::max<size_t>(1, extent.depth);
    }
    size_t pitch() const {
        return extent.width * element_bytes(desc);
    }
};
}  // namespace cuda_cpu
