// What nvcc's own headers bring of <algorithm>.
#pragma once
namespace std {
template <class T>
__host__ __device__ constexpr const T& min(const T& a, const T& b) {
    return b < a ? b : a;
}
template <class T>
__host__ __device__ constexpr const T& max(const T& a, const T& b) {
    return a < b ? b : a;
}
template <class T>
__host__ __device__ constexpr void swap(T& a, T& b) {
    T kept = a;
    a = b;
    b = kept;
}
}  // namespace std
