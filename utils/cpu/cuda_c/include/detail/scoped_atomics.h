// nvcc's own atomic functions with an order and a scope, __nv_atomic_... (CUDA 12.8). Source: CUDA
// C++ Programming Guide, "Built-in Atomic Functions".
#pragma once
#include "atomics.h"
#include "sync.h"

#define __NV_ATOMIC_RELAXED 0
#define __NV_ATOMIC_CONSUME 1
#define __NV_ATOMIC_ACQUIRE 2
#define __NV_ATOMIC_RELEASE 3
#define __NV_ATOMIC_ACQ_REL 4
#define __NV_ATOMIC_SEQ_CST 5
#define __NV_THREAD_SCOPE_THREAD 0
#define __NV_THREAD_SCOPE_BLOCK 1
#define __NV_THREAD_SCOPE_CLUSTER 2
#define __NV_THREAD_SCOPE_DEVICE 3
#define __NV_THREAD_SCOPE_SYSTEM 4

namespace cuda_cpu {
inline void scoped_fence(int scope) {
    if (scope != __NV_THREAD_SCOPE_THREAD)
        fence(scope == __NV_THREAD_SCOPE_SYSTEM ? 2 : scope >= __NV_THREAD_SCOPE_CLUSTER ? 1 : 0);
}
inline void before_scoped(int order, int scope) {
    if (order >= __NV_ATOMIC_RELEASE)
        scoped_fence(scope);
}
inline void after_scoped(int order, int scope) {
    if (order != __NV_ATOMIC_RELAXED && order != __NV_ATOMIC_RELEASE)
        scoped_fence(scope);
}
template <class T, class F>
T scoped_update(T* p, F f, int order, int scope) {
    before_scoped(order, scope);
    T old = atomic_update(p, f);
    after_scoped(order, scope);
    return old;
}
}  // namespace cuda_cpu

#define CUDA_CPU_SCOPED(name, expression)                                                          \
    template <class T>                                                                             \
    inline T __nv_atomic_##name(T* p, ::cuda_cpu::same_t<T> v, int order,                          \
                                int scope = __NV_THREAD_SCOPE_SYSTEM) {                            \
        return ::cuda_cpu::scoped_update(p, [v](T old) -> T { return expression; }, order, scope); \
    }
CUDA_CPU_SCOPED(fetch_add, old + v)
CUDA_CPU_SCOPED(fetch_sub, old - v)
CUDA_CPU_SCOPED(fetch_and, old& v)
CUDA_CPU_SCOPED(fetch_or, old | v)
CUDA_CPU_SCOPED(fetch_xor, old ^ v)
CUDA_CPU_SCOPED(fetch_min, v < old ? v : old)
CUDA_CPU_SCOPED(fetch_max, old < v ? v : old)
CUDA_CPU_SCOPED(exchange_n, v)
#undef CUDA_CPU_SCOPED
template <class T>
inline T __nv_atomic_load_n(T* p, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
    ::cuda_cpu::hot.spin += 200;
    return ::cuda_cpu::scoped_update(p, [](T old) -> T { return old; }, order, scope);
}
template <class T>
inline void __nv_atomic_load(T* p, T* to, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
    *to = __nv_atomic_load_n(p, order, scope);
}
template <class T>
inline void __nv_atomic_store_n(T* p, ::cuda_cpu::same_t<T> v, int order,
                                int scope = __NV_THREAD_SCOPE_SYSTEM) {
    __nv_atomic_exchange_n(p, v, order, scope);
}
template <class T>
inline void __nv_atomic_store(T* p, T* v, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
    __nv_atomic_exchange_n(p, *v, order, scope);
}
template <class T>
inline bool __nv_atomic_compare_exchange_n(T* p, T* expected, ::cuda_cpu::same_t<T> fresh, bool,
                                           int order, int, int scope = __NV_THREAD_SCOPE_SYSTEM) {
    ::cuda_cpu::before_scoped(order, scope);
    T wanted = *expected;
    *expected = ::cuda_cpu::atomic_cas(p, wanted, T(fresh));
    ::cuda_cpu::after_scoped(order, scope);
    return __builtin_memcmp(&wanted, expected, sizeof(T)) == 0;
}
inline void __nv_atomic_thread_fence(int order, int scope) {
    if (order != __NV_ATOMIC_RELAXED)
        ::cuda_cpu::scoped_fence(scope);
}
