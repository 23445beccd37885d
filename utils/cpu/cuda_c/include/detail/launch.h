// Launching kernels: what rewrite.py turns `kernel<<<grid, block, shared, stream>>>(args)` and
// __global__ into.
#pragma once
#include <type_traits>
#include <utility>
#include "api_types.h"
#include "thread.h"

namespace cuda_cpu {
// One kernel of the source, as its stub declares it.
struct Kernel {
    const char* name;
    Site at;
    int max_threads;  // of __launch_bounds__, or 0
    unsigned max_dynamic_shared = 49152;
    unsigned static_shared;  // bytes of the __shared__ variables that are known so far
    unsigned placed_shared = 0;  // bytes of those that have their place
    bool uses_dynamic_shared = false;
    unsigned cluster[3];  // of __cluster_dims__, or 0
    bool any_cluster = false;  // cudaFuncAttributeNonPortableClusterSizeAllowed
    constexpr Kernel(const char* n, const char* f, int l, int m = 0, size_t s = 0, unsigned x = 0,
                     unsigned y = 0, unsigned z = 0)
        : name(n), at{f, l}, max_threads(m), static_shared(unsigned(s)), cluster{x, y, z} {}
};

// A kernel with its arguments, ready to run: `run` starts threads of the block that is current.
struct Work {
    Kernel* kernel;
    const void* body;
    void (*run)(const void* body);
    void* (*clone)(const void* body);
    void (*destroy)(void* body);
};
struct PointerArg {
    const char* name;
    const void* value;
};

bool configure(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr,
               CUDA_CPU_HERE);
bool configure(dim3 grid, dim3 block, size_t shared, int null_stream, CUDA_CPU_HERE);
void launch(const Work& work, const PointerArg* args, int n_args, const void* caller);

template <class T>
inline void collect(PointerArg*& out, const char* name, const T& value) {
    if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>)
        *out++ = {name, const_cast<const void*>(reinterpret_cast<const volatile void*>(value))};
}

// The kernel's body as a lambda that holds the arguments. Where copying them is copying bits, so
// that no constructor ran for these, none of their destructors does.
template <class Body>
union KernelBody {
    Body body;
    ~KernelBody() {
        if constexpr (!__has_trivial_copy(Body))
            body.~Body();
    }
};
template <class Body>
KernelBody(Body) -> KernelBody<Body>;
// The stub of a kernel calls this.
template <class Body>
CUDA_CPU_UNCHECKED inline void launch_kernel(Kernel& kernel, const KernelBody<Body>& kept,
                                             const void* caller, const PointerArg* args = nullptr,
                                             int n_args = 0) {
    launch({&kernel, &kept.body, run_threads<Body>,
            [](const void* b) -> void* {
                return new KernelBody<Body>{Body(*static_cast<const Body*>(b))};
            },
            [](void* b) { delete static_cast<KernelBody<Body>*>(b); }},
           args, n_args, caller);
}

struct Args {
    PointerArg list[64];
    PointerArg* end = list;
    template <class T>
    Args& add(const char* name, const T& value) {
        if (end < list + 63)
            collect(end, name, value);
        return *this;
    }
    int size() const {
        return int(end - list);
    }
};

// Calls a kernel whose address and signature are known with arguments that lie behind an array of
// pointers.
// An argument may lie less aligned than its type (Python's do).
template <class T>
struct Packed {
    T value;
    explicit Packed(const void* p) {
        __builtin_memcpy(static_cast<void*>(&value), p, sizeof(T));
    }
};
// A reference arrives as the address of what it refers to.
template <class A>
decltype(auto) packed(void* p) {
    using T = std::remove_cv_t<std::remove_reference_t<A>>;
    if constexpr (std::is_reference_v<A>)
        return static_cast<A>(**static_cast<T**>(p));
    else if constexpr (std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>)
        return T(Packed<T>(p).value);
    else
        return *static_cast<T*>(p);
}
template <class... A, size_t... I>
void call_packed(void (*f)(A...), void** args, std::index_sequence<I...>) {
    f(packed<A>(args[I])...);
}
using Invoker = void (*)(void* function, void** args);
void add_kernel(void* function, Invoker invoke, const char* name, int n_params);

template <class... A>
void* kernel_address(void (*f)(A...)) {
    add_kernel(
        reinterpret_cast<void*>(f),
        [](void* p, void** args) {
            call_packed(reinterpret_cast<void (*)(A...)>(p), args, std::index_sequence_for<A...>());
        },
        nullptr, sizeof...(A));
    return reinterpret_cast<void*>(f);
}
template <class F>
void* kernel_address(F f) {
    return (void*)f;
}

struct Registration {
    template <class... A>
    Registration(void (*f)(A...), const char* name) {
        add_kernel(
            reinterpret_cast<void*>(f),
            [](void* p, void** args) {
                call_packed(reinterpret_cast<void (*)(A...)>(p), args,
                            std::index_sequence_for<A...>());
            },
            name, sizeof...(A));
    }
};

template <class T>
using Element = std::remove_extent_t<T>;

// __shared__ variables. Every declaration has a place in the block's shared memory, the same for
// all its threads.
void place_shared(unsigned* place, unsigned bytes, Site at, unsigned aligned = 0);
template <class T, size_t Aligned = 0, class Tag>
CUDA_CPU_UNCHECKED inline T& shared(Tag, CUDA_CPU_HERE) {
    static unsigned place =
        0;  // 0: not placed yet; one declaration, one instantiation (Tag is a closure type)
    if (__builtin_expect(place == 0, 0))
        place_shared(&place, sizeof(T), at, Aligned > alignof(T) ? Aligned : alignof(T));
    return *reinterpret_cast<T*>(hot.shared + place);
}
void* dynamic_shared();
// extern __shared__ at namespace scope is a pointer of each core's own, which is set when a block
// starts to run there.
struct DynamicPointer {
    explicit DynamicPointer(void (*set)(void*));
};
// __shared__ at namespace scope.
template <class T, int Id>
struct SharedVariable {
    T& get() const {
        return shared<T>(*this);
    }
    operator T&() const {
        return get();
    }
    T* operator&() const {
        return &get();
    }
    template <class V>
    T& operator=(const V& v) {
        return get() = v;
    }
};
}  // namespace cuda_cpu
