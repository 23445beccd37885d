// Tests of exercise c_for_cuda.raii; the learner's file is "answer.h".
#include "tests.h"
#include <new>
#include <type_traits>
#include <utility>

enum cudaError_t { cudaSuccess, cudaErrorInvalidValue };
static struct {
    void* data;
    size_t bytes;
} live[1000];  // what is allocated now
static int n_live;
static int place_of(void* p) {  // in `live`, n_live if it is not there
    int i = 0;
    while (i < n_live && live[i].data != p)
        ++i;
    return i;
}
template <typename T>
cudaError_t cudaMalloc(T** p, size_t bytes) {
    // more than there may be room for: nobody looks into it
    *p = (T*)malloc(bytes > size_t(1) << 32 ? 1 : bytes + !bytes);
    int i = place_of(*p);
    n_live += i == n_live;
    live[i] = {*p, bytes};
    return cudaSuccess;
}
static cudaError_t cudaFree(void* p) {
    if (!p)
        return cudaSuccess;  // as CUDA's: nothing to do
    int i = place_of(p);
    if (i == n_live)
        FAIL("double_free", "cudaFree got an address that is not allocated, or not any more.");
    live[i] = live[--n_live];
    free(p);
    return cudaSuccess;
}
#include "answer.h"

template <typename T>
static void owns_and_frees(size_t n) {
    {
        DeviceArray<T> a(n);
        if (n_live != 1)
            FAIL("wrong_value", "The constructor must call cudaMalloc once.");
        if (!a.data || place_of(a.data) == n_live)
            FAIL("unwritten", "`data` does not hold the address that cudaMalloc gave.");
        if (a.size != n)
            FAIL("wrong_value", "`size` must be %zu, and is %zu.", n, a.size);
        if (live[place_of(a.data)].bytes != n * sizeof(T))
            FAIL("wrong_size",
                 "%zu values of %zu bytes are %zu bytes; cudaMalloc was asked for %zu.", n,
                 sizeof(T), n * sizeof(T), live[place_of(a.data)].bytes);
    }
    if (n_live)
        FAIL("leak", "The owner is gone, and its memory is still allocated.");
}

template <typename T>
static void moves() {
    {
        DeviceArray<T> a(random_int(2, 500));
        T* data = a.data;
        size_t size = a.size;
        {
            DeviceArray<T> b(std::move(a));
            if (b.data != data || b.size != size)
                FAIL("wrong_value",
                     "After a move the new owner must hold the old owner's pointer and size, not "
                     "memory of its own.");
            if (n_live > 1)
                FAIL("leak", "A move must not allocate.");
            if (!n_live)
                FAIL("use_after_free",
                     "A move must not free: the new owner holds memory that is gone.");
            if (a.data)
                FAIL("double_free",
                     "After a move both hold the same address: set the old owner's `data` to "
                     "nullptr.");
            if (a.size)
                FAIL("wrong_value",
                     "After a move the old owner must be empty: its `size` is still %zu.", a.size);
        }
        if (n_live)
            FAIL("leak", "The new owner is gone, and the memory is still allocated.");
    }
    if (n_live)
        FAIL("leak", "Both owners are gone, and the memory is still allocated.");
}

// Nobody asked for it, but where it is written it must be right.
template <typename T, typename Array = DeviceArray<T>>
static void is_assigned() {
    if constexpr (std::is_move_assignable<Array>::value) {
        {
            Array a(random_int(2, 500)), b(random_int(2, 500));
            T* data = b.data;
            a = std::move(b);
            if (a.data != data)
                FAIL("wrong_value", "After `a = std::move(b)` a must hold what was b's.");
        }
        if (n_live)
            FAIL("leak", "`a = std::move(b)` forgets what a held: nobody frees it any more.");
    }
}

void run_tests() {
    for (size_t n : {size_t(1), size_t(2), size_t(random_int(3, 500))}) {
        owns_and_frees<float>(n);
        owns_and_frees<double>(n);
        owns_and_frees<unsigned char>(n);
    }
    owns_and_frees<float>((size_t(1) << 30) + random_int(1, 500));  // bytes beyond 32 bits
    is_assigned<float>();
    using A = DeviceArray<float>;
    if (std::is_constructible<A, const A&>::value || std::is_constructible<A, A&>::value ||
        std::is_assignable<A&, const A&>::value || std::is_assignable<A&, A&>::value)
        FAIL("double_free",
             "A DeviceArray can be copied: then two owners free the same memory. `= delete` "
             "forbids it.");
    if constexpr (std::is_move_constructible<A>::value) {
        moves<float>();
        moves<double>();
    } else
        FAIL("wrong_value",
             "A DeviceArray cannot be moved: there is no `DeviceArray(DeviceArray &&other)`.");
}
