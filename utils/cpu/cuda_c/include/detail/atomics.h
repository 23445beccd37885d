// Atomic operations. Shared memory belongs to one core, so a plain read-modify-write is atomic
// there; so is all memory while one core runs the grid. They are templates: a program's own
// atomicAdd(double*, double) is preferred to them.
#pragma once
#include <cstring>
#include <type_traits>
#include "thread.h"

namespace cuda_cpu {
extern bool checking;  // built with the slow checks
void check_atomic(const volatile void* address, unsigned bytes, const void* code);
void host_looks(const volatile void* flag, unsigned bytes);
void checks_overwrites(const volatile void* address, size_t bytes);  // whatever was there
void counts_sum();
void counts_nothing_added(const volatile void* address);
void counts_a_look();

CUDA_CPU_UNCHECKED inline bool alone(const volatile void* p) {
    return !hot.concurrent || size_t((const volatile char*)p - hot.shared) < hot.shared_bytes;
}
template <int N>
struct Bits;
template <>
struct Bits<2> {
    typedef unsigned short type;
};
template <>
struct Bits<4> {
    typedef unsigned type;
};
template <>
struct Bits<8> {
    typedef unsigned long long type;
};
template <>
struct Bits<16> {
    typedef unsigned __int128 type;
};

// An atomic operation adds v: more than a count of one is a sum. An integer 0, added at an address
// that is said, may be a look at what is there.
template <class T>
CUDA_CPU_UNCHECKED inline void note_added(T v, const volatile void* address = nullptr) {
    if constexpr (std::is_arithmetic_v<T>)
        if (__builtin_expect(checking, 0)) {
            if (std::is_integral_v<T> && v == T(0) && address)
                counts_nothing_added(address);
            else if (v != T(0) && v != T(1) && v != T(-1))
                counts_sum();
        }
}

// Replaces *p by f(*p) and returns the old value.
template <class T, class F>
CUDA_CPU_UNCHECKED inline T atomic_update(volatile T* address, F f) {
    T* p = const_cast<T*>(address);
    spinning();
    if (__builtin_expect(checking, 0))
        check_atomic(p, sizeof(T), __builtin_return_address(0));
    if (alone(p)) {
        T old = *p;
        *p = f(old);
        return old;
    }
    typedef typename Bits<sizeof(T)>::type B;
    B* b = reinterpret_cast<B*>(p);
    B before = __atomic_load_n(b, __ATOMIC_RELAXED);
    for (;;) {
        T old, fresh;
        std::memcpy(&old, &before, sizeof(T));
        fresh = f(old);
        B after;
        std::memcpy(&after, &fresh, sizeof(T));
        if (__atomic_compare_exchange_n(b, &before, after, true, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
            return old;
    }
}
template <class T>
CUDA_CPU_UNCHECKED inline T atomic_add(T* p, T v) {
    note_added(v, p);
    if constexpr (std::is_integral_v<T>) {
        spinning();
        if (__builtin_expect(checking, 0))
            check_atomic(p, sizeof(T), __builtin_return_address(0));
        if (alone(p)) {
            T old = *p;
            *p = old + v;
            return old;
        }
        return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);
    } else {
        return atomic_update(p, [v](T old) -> T { return old + v; });
    }
}
template <class T>
CUDA_CPU_UNCHECKED inline T atomic_cas(T* p, T expected, T fresh) {
    typedef typename Bits<sizeof(T)>::type B;
    if (__builtin_expect(checking, 0))
        check_atomic(p, sizeof(T), __builtin_return_address(0));
    B e, n;
    std::memcpy(&e, &expected, sizeof(T));
    std::memcpy(&n, &fresh, sizeof(T));
    B* b = reinterpret_cast<B*>(p);
    B old;
    if (alone(p)) {
        old = *b;
        if (old == e)
            *b = n;
    } else {
        old = e;
        __atomic_compare_exchange_n(b, &old, n, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    if (old != e && in_kernel()) {
        hot.spin += 500;  // a lock somebody else holds: let them run soon
        spinning();
    }
    T r;
    std::memcpy(&r, &old, sizeof(T));
    if constexpr (std::is_arithmetic_v<T>)
        if (old == e)
            note_added(T(fresh - expected));
    return r;
}
// The value's type is that of the variable, whatever the argument's is (atomicAdd(&unsigned, -1)).
template <class T>
struct Same {
    typedef T type;
};
template <class T>
using same_t = typename Same<T>::type;
}  // namespace cuda_cpu

// An operation with a 0 that stands in the program changes nothing: it looks. (The compiler knows
// such a 0 in what it inlines into the kernel; a weight that happens to be 0 is none.)
#define CUDA_CPU_MAY_LOOK(v)                                              \
    if constexpr (std::is_integral_v<T>)                                  \
        if (::cuda_cpu::checking && __builtin_constant_p(v) && v == T(0)) \
            ::cuda_cpu::counts_a_look();
#define CUDA_CPU_ATOMIC1(name) \
    template <class T>         \
    inline T name(T* p, ::cuda_cpu::same_t<T> v)
#define CUDA_CPU_ATOMIC(name, expression)                                            \
    CUDA_CPU_ATOMIC1(name) {                                                         \
        return ::cuda_cpu::atomic_update(p, [v](T old) -> T { return expression; }); \
    }                                                                                \
    CUDA_CPU_ATOMIC1(name##_block) {                                                 \
        return name(p, v);                                                           \
    }                                                                                \
    CUDA_CPU_ATOMIC1(name##_system) {                                                \
        return name(p, v);                                                           \
    }
#define CUDA_CPU_VOLATILE(name)                             \
    template <class T>                                      \
    inline T name(volatile T* p, ::cuda_cpu::same_t<T> v) { \
        return name(const_cast<T*>(p), v);                  \
    }

CUDA_CPU_ATOMIC1(atomicAdd) {
    CUDA_CPU_MAY_LOOK(v)
    return ::cuda_cpu::atomic_add(p, v);
}
CUDA_CPU_ATOMIC1(atomicAdd_block) {
    CUDA_CPU_MAY_LOOK(v)
    return ::cuda_cpu::atomic_add(p, v);
}
CUDA_CPU_ATOMIC1(atomicAdd_system) {
    CUDA_CPU_MAY_LOOK(v)
    return ::cuda_cpu::atomic_add(p, v);
}
CUDA_CPU_ATOMIC(atomicSub, (::cuda_cpu::note_added(v), old - v))
CUDA_CPU_ATOMIC(atomicMin, v < old ? v : old)
CUDA_CPU_ATOMIC(atomicMax, old < v ? v : old)
CUDA_CPU_ATOMIC(atomicAnd, old& v)
CUDA_CPU_ATOMIC1(atomicOr) {
    CUDA_CPU_MAY_LOOK(v)
    return ::cuda_cpu::atomic_update(p, [v](T old) -> T { return old | v; });
}
CUDA_CPU_ATOMIC1(atomicOr_block) {
    CUDA_CPU_MAY_LOOK(v)
    return ::cuda_cpu::atomic_update(p, [v](T old) -> T { return old | v; });
}
CUDA_CPU_ATOMIC1(atomicOr_system) {
    CUDA_CPU_MAY_LOOK(v)
    return ::cuda_cpu::atomic_update(p, [v](T old) -> T { return old | v; });
}
CUDA_CPU_ATOMIC(atomicXor, old ^ v)
CUDA_CPU_ATOMIC(atomicInc, old >= v ? 0 : old + 1)
CUDA_CPU_ATOMIC(atomicDec, old == 0 || old > v ? v : old - 1)
CUDA_CPU_ATOMIC1(atomicExch) {
    ::cuda_cpu::hot.spin += 200;
    if (__builtin_expect(::cuda_cpu::checking, 0))
        ::cuda_cpu::checks_overwrites(p, sizeof(T));
    return ::cuda_cpu::atomic_update(p, [v](T) -> T { return v; });
}
CUDA_CPU_ATOMIC1(atomicExch_block) {
    return atomicExch(p, v);
}
CUDA_CPU_ATOMIC1(atomicExch_system) {
    return atomicExch(p, v);
}
template <class T>
inline T atomicCAS(T* p, ::cuda_cpu::same_t<T> expected, ::cuda_cpu::same_t<T> fresh) {
    return ::cuda_cpu::atomic_cas(p, expected, fresh);
}
template <class T>
inline T atomicCAS(volatile T* p, ::cuda_cpu::same_t<T> expected, ::cuda_cpu::same_t<T> fresh) {
    return ::cuda_cpu::atomic_cas(const_cast<T*>(p), expected, fresh);
}
template <class T>
inline T atomicCAS_block(T* p, ::cuda_cpu::same_t<T> expected, ::cuda_cpu::same_t<T> fresh) {
    return ::cuda_cpu::atomic_cas(p, expected, fresh);
}
template <class T>
inline T atomicCAS_system(T* p, ::cuda_cpu::same_t<T> expected, ::cuda_cpu::same_t<T> fresh) {
    return ::cuda_cpu::atomic_cas(p, expected, fresh);
}
CUDA_CPU_VOLATILE(atomicAdd)
CUDA_CPU_VOLATILE(atomicSub)
CUDA_CPU_VOLATILE(atomicExch)
CUDA_CPU_VOLATILE(atomicMin)
CUDA_CPU_VOLATILE(atomicMax)
CUDA_CPU_VOLATILE(atomicOr)
CUDA_CPU_VOLATILE(atomicAnd)
#undef CUDA_CPU_ATOMIC
#undef CUDA_CPU_ATOMIC1
#undef CUDA_CPU_VOLATILE
