// Asynchronous copies of libcu++, cut into what one cp.async brings: 16, 8 or 4 bytes. What is not
// aligned, or does not go from global to shared memory, is copied at once, as on a GPU.
#pragma once
#include "detail/ptx/declarations.h"
#include "scope.h"
#include "macros_aside.inc"

namespace cuda_cpu {
namespace ptx {
bool in_shared(u64 address);
}
}  // namespace cuda_cpu

namespace cuda {
// A number of bytes that is promised to be a multiple of Alignment, as both addresses are.
template <size_t Alignment>
struct aligned_size_t {
    static constexpr size_t align = Alignment;
    size_t value;
    constexpr explicit aligned_size_t(size_t bytes) : value(bytes) {}
    constexpr operator size_t() const {
        return value;
    }
};

namespace detail {
struct one_thread {
    unsigned thread_rank() const {
        return 0;
    }
    unsigned size() const {
        return 1;
    }
};
inline size_t widest(size_t to, size_t from, size_t bytes) {
    for (size_t width : {16, 8, 4})
        if ((to | from | bytes) % width == 0)
            return width;
    return 1;
}
// The part of a copy that falls to one of `all` threads.
inline void copy_part(size_t rank, size_t all, void* to, const void* from, size_t bytes,
                      ::cuda_cpu::Site at) {
    using namespace ::cuda_cpu::ptx;
    size_t width = widest(size_t(to), size_t(from), bytes);
    bool asynchronous =
        ::cuda_cpu::in_kernel() && width > 1 && in_shared(u64(to)) && !in_shared(u64(from));
    for (size_t i = rank * width; i < bytes; i += all * width) {
        char* target = static_cast<char*>(to) + i;
        const char* source = static_cast<const char*>(from) + i;
        if (asynchronous)
            cp_async(shared_address(target, at), u64(source), u32(width), u32(width), at);
        else
            memcpy(target, source, width);
    }
}
inline void wait_for_copies() {
    if (!::cuda_cpu::in_kernel())
        return;
    ::cuda_cpu::ptx::cp_async_commit();
    ::cuda_cpu::ptx::cp_async_wait(0);
}
}  // namespace detail
}  // namespace cuda
#include "macros_back.inc"
