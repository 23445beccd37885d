// Scopes and orders of libcu++'s atomics, and how an atomic access is made. In a kernel it is the
// runtime's own (include/detail/atomics.h), so that threads which poll give way to others and the
// slow checks see it; host threads use the processor's.
#pragma once
#include <atomic>
#include "standard.h"
#include "macros_aside.inc"

namespace cuda {
enum thread_scope {
    thread_scope_system = 0,
    thread_scope_device = 1,
    thread_scope_block = 2,
    thread_scope_thread = 3
};
using ::std::memory_order;
using ::std::memory_order_acq_rel;
using ::std::memory_order_acquire;
using ::std::memory_order_consume;
using ::std::memory_order_relaxed;
using ::std::memory_order_release;
using ::std::memory_order_seq_cst;

namespace detail {
// The runtime counts the other way round: 0 is a block, 1 the device, 2 the system.
inline void fence(thread_scope scope) {
    if (scope != thread_scope_thread)
        ::cuda_cpu::fence(2 - int(scope));
}
inline bool releases(memory_order order) {
    return order != memory_order_relaxed && order != memory_order_acquire &&
           order != memory_order_consume;
}
inline bool acquires(memory_order order) {
    return order != memory_order_relaxed && order != memory_order_release;
}

// Replaces *p by f(*p) in one step; what was there.
template <class T, class F>
CUDA_CPU_UNCHECKED T update(T* p, F f, memory_order order, thread_scope scope) {
    if (releases(order))
        fence(scope);
    T old;
    if (::cuda_cpu::in_kernel()) {
        old = ::cuda_cpu::atomic_update(p, f);
    } else {
        if (__builtin_expect(::cuda_cpu::checking, 0))
            ::cuda_cpu::host_looks(p, sizeof(T));
        typedef typename ::cuda_cpu::Bits<sizeof(T)>::type Bits;
        Bits before = __atomic_load_n(reinterpret_cast<Bits*>(p), __ATOMIC_SEQ_CST);
        Bits after;
        do {
            __builtin_memcpy(static_cast<void*>(&old), &before, sizeof(T));
            T fresh = f(old);
            __builtin_memcpy(&after, &fresh, sizeof(T));
        } while (!__atomic_compare_exchange_n(reinterpret_cast<Bits*>(p), &before, after, true,
                                              __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    }
    if (acquires(order))
        fence(scope);
    return old;
}
// A load may stand in a loop that waits: it lets others run soon.
template <class T>
CUDA_CPU_UNCHECKED T load(const T* p, memory_order order, thread_scope scope) {
    ::cuda_cpu::hot.spin += 200;
    return update(
        const_cast<T*>(p), [](T old) -> T { return old; },
        order == memory_order_seq_cst ? memory_order_acq_rel : order, scope);
}
template <class T>
CUDA_CPU_UNCHECKED bool exchange_if(T* p, T& expected, T fresh, memory_order order,
                                    thread_scope scope) {
    T old = expected;
    bool same = false;
    old = update(
        p,
        [&](T now) -> T {
            same = __builtin_memcmp(&now, &expected, sizeof(T)) == 0;
            return same ? fresh : now;
        },
        order, scope);
    if constexpr (::std::is_arithmetic_v<T>)
        if (same)
            ::cuda_cpu::note_added(T(fresh - expected));
    if (!same) {
        expected = old;
        ::cuda_cpu::hot.spin += 500;
        ::cuda_cpu::spinning();
    }
    return same;
}
}  // namespace detail

inline void atomic_thread_fence(memory_order order, thread_scope scope = thread_scope_system) {
    if (order != memory_order_relaxed)
        detail::fence(scope);
}
namespace std {
inline void atomic_thread_fence(memory_order order) {
    ::cuda::atomic_thread_fence(order);
}
}  // namespace std
}  // namespace cuda
#include "macros_back.inc"
