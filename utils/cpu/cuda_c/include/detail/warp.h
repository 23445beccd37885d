// Warp operations: every one is a meeting of the lanes in its mask, at which values are exchanged.
#pragma once
#include <cstring>
#include <type_traits>
#include "sync.h"

namespace cuda_cpu {
enum WarpOp {
    op_sync,
    op_shuffle,
    op_vote,
    op_match,
    op_reduce,
    op_active,
    // .aligned in PTX: all lanes come to the same place in the program
    op_aligned,
    op_product,
    op_matrix
};

struct Meeting {
    unsigned mask, arrived, leaving;
    WarpOp op;
    const void* place;  // op_active: where in the program
    unsigned long long value[32];
    List waiting;  // lanes that wait
    const char* name;
    Site at;  // where the first of them came from
    Meeting* next;
};
Switch come(unsigned mask, WarpOp op, unsigned long long value, const char* name, Site at);
CUDA_CPU_UNCHECKED inline Meeting* meet(unsigned mask, WarpOp op, unsigned long long value,
                                        const char* name, Site at) {
    Switch s = come(mask, op, value, name, at);
    if (!s.thread)
        return static_cast<Meeting*>(s.to);
    cuda_cpu_switch(&s.thread->sp, s.to);
    return s.thread->meeting;
}
void part(Meeting* m);
// What a shuffle takes from a lane that takes no part. The slow checks give integers this value, and
// look for it in what the thread stores.
struct AbsentLane {
    int lane;
    unsigned bytes;
    bool floating;
    Site at;
};
const unsigned long long absent_integer = 0x4d5a6b7c4d5a6b7cull;
extern bool checking;
void reads_absent_lane(AbsentLane read);
// For include/lib/mma.h: a matrix operation without all 32 lanes; with --check, whether the memory
// of a matrix is aligned.
[[noreturn]] void warp_incomplete(unsigned present, const char* name, Site at);
void check_matrix(const void* p, size_t row_bytes, const char* name, Site at);
unsigned active_lanes(const void* place, Site at);
// Old code lets the lanes of a warp exchange values through volatile shared memory without
// __syncwarp(), which relies on their running in step. rewrite.py puts this behind each store of
// that kind: those that run together wait for each other and go on in the order of their lanes. No
// barrier for the slow checks, which call such code a race.
__attribute__((noinline)) inline void in_step() {
    active_lanes(__builtin_return_address(0), {"", 0});
}

inline unsigned lane() {
    return hot.tid & 31;
}

template <class T>
CUDA_CPU_UNCHECKED inline unsigned long long pack(T v) {
    static_assert(sizeof(T) <= 8, "a warp operation takes values of at most 8 bytes");
    unsigned long long u = 0;
    __builtin_memcpy(&u, &v, sizeof(T));
    return u;
}
template <class T>
CUDA_CPU_UNCHECKED inline T unpack(unsigned long long u) {
    T v;
    __builtin_memcpy(&v, &u, sizeof(T));
    return v;
}
// What a shuffle gives from a lane that takes no part: anything on a GPU; here NaN, or -1.
template <class T>
CUDA_CPU_UNCHECKED inline T from_absent_lane(int source, Site at) {
    reads_absent_lane({source, sizeof(T), !std::is_integral_v<T>, at});
    return unpack<T>(checking && std::is_integral_v<T> ? absent_integer : ~0ull);
}
template <class T>
CUDA_CPU_UNCHECKED inline T take_from(unsigned mask, T v, int source, const char* name, Site at) {
    Meeting* m = meet(mask, op_shuffle, pack(v), name, at);
    bool present = m->arrived >> source & 1;
    T r = present ? unpack<T>(m->value[source]) : from_absent_lane<T>(source, at);
    part(m);
    return r;
}
template <class T, class F>
CUDA_CPU_UNCHECKED inline T fold(unsigned mask, T v, F f, const char* name, Site at) {
    Meeting* m = meet(mask, op_reduce, pack(v), name, at);
    bool first = true;
    T r = v;
    for (int i = 0; i < 32; ++i)
        if (m->arrived >> i & 1) {
            r = first ? unpack<T>(m->value[i]) : f(r, unpack<T>(m->value[i]));
            first = false;
        }
    part(m);
    return r;
}
CUDA_CPU_UNCHECKED inline unsigned vote(unsigned mask, bool p, const char* name, Site at) {
    Meeting* m = meet(mask, op_vote, p, name, at);
    unsigned r = 0;
    for (int i = 0; i < 32; ++i)
        r |= unsigned((m->arrived >> i & 1) && m->value[i]) << i;
    part(m);
    return r;
}
CUDA_CPU_UNCHECKED inline unsigned lanes_present(unsigned mask, const char* name, Site at,
                                                 WarpOp op = op_sync) {
    Meeting* m = meet(mask, op, 0, name, at);
    unsigned r = m->arrived;
    part(m);
    return r;
}
template <class T>
CUDA_CPU_UNCHECKED inline unsigned match(unsigned mask, T v, bool all, int* pred, const char* name,
                                         Site at) {
    Meeting* m = meet(mask, op_match, pack(v), name, at);
    unsigned same = 0, arrived = m->arrived;
    for (int i = 0; i < 32; ++i)
        same |= unsigned((arrived >> i & 1) && m->value[i] == pack(v)) << i;
    part(m);
    if (!all)
        return same;
    if (pred)
        *pred = same == arrived;
    return same == arrived ? same : 0;
}
}  // namespace cuda_cpu

template <class T>
inline T __shfl_sync(unsigned mask, T v, int source, int width = 32, CUDA_CPU_HERE) {
    int base = ::cuda_cpu::lane() & ~(width - 1);
    return ::cuda_cpu::take_from(mask, v, base + (source & (width - 1)), "__shfl_sync", at);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32, CUDA_CPU_HERE) {
    int me = ::cuda_cpu::lane(), base = me & ~(width - 1), source = me - int(delta);
    return ::cuda_cpu::take_from(mask, v, source < base ? me : source, "__shfl_up_sync", at);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32, CUDA_CPU_HERE) {
    int me = ::cuda_cpu::lane(), end = (me & ~(width - 1)) + width, source = me + int(delta);
    return ::cuda_cpu::take_from(mask, v, source >= end ? me : source, "__shfl_down_sync", at);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T v, int lanes, int width = 32, CUDA_CPU_HERE) {
    int me = ::cuda_cpu::lane(), end = (me & ~(width - 1)) + width, source = me ^ lanes;
    return ::cuda_cpu::take_from(mask, v, source >= end ? me : source, "__shfl_xor_sync", at);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, CUDA_CPU_HERE) {
    ::cuda_cpu::part(::cuda_cpu::meet(mask, ::cuda_cpu::op_sync, 0, "__syncwarp", at));
}
inline unsigned __ballot_sync(unsigned mask, int p, CUDA_CPU_HERE) {
    return ::cuda_cpu::vote(mask, p, "__ballot_sync", at);
}
inline int __any_sync(unsigned mask, int p, CUDA_CPU_HERE) {
    return ::cuda_cpu::vote(mask, p, "__any_sync", at) != 0;
}
inline int __all_sync(unsigned mask, int p, CUDA_CPU_HERE) {
    return ::cuda_cpu::vote(mask, !p, "__all_sync", at) == 0;
}
inline int __uni_sync(unsigned mask, int p, CUDA_CPU_HERE) {
    unsigned yes = ::cuda_cpu::vote(mask, p, "__uni_sync", at);
    return yes == 0 || yes == mask;
}
template <class T>
inline unsigned __match_any_sync(unsigned mask, T v, CUDA_CPU_HERE) {
    return ::cuda_cpu::match(mask, v, false, nullptr, "__match_any_sync", at);
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T v, int* pred, CUDA_CPU_HERE) {
    return ::cuda_cpu::match(mask, v, true, pred, "__match_all_sync", at);
}
#define CUDA_CPU_REDUCE(name, expression)                                                      \
    template <class T>                                                                         \
    inline T __reduce_##name##_sync(unsigned mask, T v, CUDA_CPU_HERE) {                       \
        return ::cuda_cpu::fold(                                                               \
            mask, v, [](T a, T b) -> T { return expression; }, "__reduce_" #name "_sync", at); \
    }
CUDA_CPU_REDUCE(add, a + b)
CUDA_CPU_REDUCE(min, b < a ? b : a)
CUDA_CPU_REDUCE(max, a < b ? b : a)
CUDA_CPU_REDUCE(and, a& b)
CUDA_CPU_REDUCE(or, a | b)
CUDA_CPU_REDUCE(xor, a ^ b)
#undef CUDA_CPU_REDUCE
// Which lanes run together is settled by letting every lane of the block go as far as it can: those
// that stand at this very call are the active ones.
__attribute__((noinline)) inline unsigned __activemask(CUDA_CPU_HERE) {
    return ::cuda_cpu::active_lanes(__builtin_return_address(0), at);
}
