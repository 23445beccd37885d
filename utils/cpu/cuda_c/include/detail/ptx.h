// Inline PTX: what ptx_to_cpp.py and ptx_async.py call. Included where a source has `asm`.
#pragma once
#include "../cuda_runtime.h"
#include "ptx/arithmetic.h"
#include "ptx/declarations.h"

namespace cuda_cpu {
extern bool uses_asm;
static const bool asm_is_used = (uses_asm = true);

namespace ptx {
template <char C, class X>
CUDA_CPU_UNCHECKED inline void check_operand(const X& x) {
    static_assert(sizeof(X) == (C == 'h'               ? 2
                                : C == 'r' || C == 'f' ? 4
                                                       : 8),
                  "an asm operand's size does not match its constraint: \"h\" takes 2 bytes, \"r\" "
                  "and \"f\" 4, \"l\" and \"d\" 8");
    (void)x;
}

// ---- memory: in the caller's line, so that the slow checks see it
template <class T>
__attribute__((always_inline)) inline T load(const char* p) {
    return *reinterpret_cast<const T*>(p);
}
template <class T>
__attribute__((always_inline)) inline T load_volatile(const char* p) {
    return *reinterpret_cast<const volatile T*>(p);
}
template <class T>
__attribute__((always_inline)) inline void store(char* p, T value) {
    *reinterpret_cast<T*>(p) = value;
}
template <class T>
__attribute__((always_inline)) inline void store_volatile(char* p, T value) {
    *reinterpret_cast<volatile T*>(p) = value;
}
void misaligned(const char* p, unsigned bytes, Site at);
CUDA_CPU_UNCHECKED inline void check_aligned(const char* p, unsigned bytes, Site at) {
    if (__builtin_expect(size_t(p) % bytes, 0))
        misaligned(p, bytes, at);
}
template <class T>
CUDA_CPU_UNCHECKED inline T bits_and(T a, T b) {
    return a & b;
}
template <class T>
CUDA_CPU_UNCHECKED inline T bits_or(T a, T b) {
    return a | b;
}
template <class T>
CUDA_CPU_UNCHECKED inline T bits_xor(T a, T b) {
    return a ^ b;
}
template <class T>
CUDA_CPU_UNCHECKED inline T wrapped_up(T old, T top) {
    return old >= top ? T(0) : T(old + 1);
}
template <class T>
CUDA_CPU_UNCHECKED inline T wrapped_down(T old, T top) {
    return old == 0 || old > top ? top : T(old - 1);
}
template <class T>
CUDA_CPU_UNCHECKED inline T second(T, T b) {
    return b;
}
template <class T, class F>
__attribute__((always_inline)) inline T atomic(char* p, T value, F f) {
    return atomic_update(reinterpret_cast<T*>(p), [=](T old) -> T { return f(old, value); });
}
template <class T>
__attribute__((always_inline)) inline T compare_and_swap(char* p, T expected, T fresh) {
    return atomic_cas(reinterpret_cast<T*>(p), expected, fresh);
}
bool in_shared(u64 address);

// ---- the rest of arithmetic
template <class T>
CUDA_CPU_UNCHECKED inline T add_carry(T a, T b, bool used, bool& carry, bool keeps) {
    unsigned __int128 sum = (unsigned __int128)a + b + used;
    if (keeps)
        carry = sum >> width<T> & 1;
    return T(sum);
}
template <class T>
CUDA_CPU_UNCHECKED inline T sub_carry(T a, T b, bool used, bool& carry, bool keeps) {
    bool borrows = (unsigned __int128)a < (unsigned __int128)b + used;
    if (keeps)
        carry = borrows;
    return T(a - b - used);
}
template <class A, class B>
CUDA_CPU_UNCHECKED inline u32 dot4(u32 a, u32 b, u32 c) {
    for (int i = 0; i < 4; ++i)
        c += u32(s32(A(a >> i * 8)) * s32(B(b >> i * 8)));
    return c;
}

// ---- warps, special registers
enum class Shuffle { up, down, bfly, idx };
inline u32 shuffle(Shuffle how, u32 a, u32 b, u32 c, u32 mask, bool& inside, Site at) {
    int me = int(lane()), lanes = int(b & 31), clamp = int(c & 31), segment = int(c >> 8 & 31);
    int last = (me & segment) | (clamp & ~segment), first = me & segment;
    int source = how == Shuffle::up     ? me - lanes
                 : how == Shuffle::down ? me + lanes
                 : how == Shuffle::bfly ? me ^ lanes
                                        : first | (lanes & ~segment);
    inside = how == Shuffle::up ? source >= last : source <= last;
    return take_from(mask, a, inside ? source : me, "shfl.sync", at);
}
inline u32 warps_of_block() {
    return (hot.count + 31) / 32;
}
u32 processor();
u32 processors();
u32 dynamic_bytes();
}  // namespace ptx
}  // namespace cuda_cpu
