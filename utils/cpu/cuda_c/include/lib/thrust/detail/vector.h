// host_vector is a std::vector; device_vector owns memory on the device, universal_vector memory
// that the host reads, too.
#pragma once
#include <initializer_list>
#include <vector>
#include "algorithms.h"
#include "../../macros_aside.inc"

namespace thrust {
template <class T>
struct universal_allocator;
template <class T, class Allocator = void>
class device_vector;
template <class T, class Allocator = universal_allocator<T>>
using universal_vector = device_vector<T, Allocator>;

template <class T, class Allocator = void>
class host_vector : public std::vector<T> {
    static_assert(!std::is_same_v<T, bool>,
                  "thrust::host_vector<bool> is not offered on the CPU: use unsigned char");

  public:
    using std::vector<T>::vector;
    host_vector() = default;
    host_vector(const host_vector&) = default;
    host_vector(host_vector&&) = default;
    host_vector(const std::vector<T>& v) : std::vector<T>(v) {}
    template <class U, class A>
    host_vector(const device_vector<U, A>& d) {
        *this = d;
    }
    host_vector& operator=(const host_vector&) = default;
    host_vector& operator=(host_vector&&) = default;
    template <class U, class A>
    host_vector& operator=(const device_vector<U, A>& d) {
        this->resize(d.size());
        thrust::copy(d.begin(), d.end(), this->begin());
        return *this;
    }
};

template <class T, class Allocator>
class device_vector {
    static_assert(std::is_trivially_copy_constructible_v<T> && std::is_trivially_destructible_v<T>,
                  "thrust::device_vector on the CPU holds plain data only");
    static constexpr bool universal = std::is_same_v<Allocator, universal_allocator<T>>;
    T* memory = nullptr;
    size_t length = 0, room = 0;

  public:
    using value_type = T;
    using size_type = size_t;
    using difference_type = std::ptrdiff_t;
    using reference = std::conditional_t<universal, T&, device_reference<T>>;
    using const_reference = std::conditional_t<universal, const T&, device_reference<const T>>;
    using pointer = device_ptr<T>;
    using const_pointer = device_ptr<const T>;
    using iterator = device_ptr<T>;
    using const_iterator = device_ptr<const T>;
    using reverse_iterator = std::reverse_iterator<iterator>;

    device_vector() = default;
    explicit device_vector(size_t n) : device_vector(n, T()) {}
    device_vector(size_t n, const T& v) {
        resize(n, v);
    }
    device_vector(const device_vector& v) {
        assign(v.begin(), v.end());
    }
    device_vector(device_vector&& v) {
        swap(v);
    }
    template <class U, class A>
    device_vector(const device_vector<U, A>& v) {
        assign(v.begin(), v.end());
    }
    device_vector(const std::vector<T>& v) {
        assign(v.begin(), v.end());
    }
    template <class U>
    device_vector(const host_vector<U>& v) {
        assign(v.begin(), v.end());
    }
    device_vector(std::initializer_list<T> v) {
        assign(v.begin(), v.end());
    }
    template <class I, std::enable_if_t<!std::is_arithmetic_v<I>, int> = 0>
    device_vector(I first, I last) {
        assign(first, last);
    }
    ~device_vector() {
        if (memory)
            cudaFree(memory);
    }
    device_vector& operator=(const device_vector& v) {
        if (this != &v)
            assign(v.begin(), v.end());
        return *this;
    }
    device_vector& operator=(device_vector&& v) {
        swap(v);
        return *this;
    }
    template <class V>
    device_vector& operator=(const V& v) {
        assign(v.begin(), v.end());
        return *this;
    }

    iterator begin() {
        return iterator(memory);
    }
    iterator end() {
        return iterator(memory + length);
    }
    const_iterator begin() const {
        return const_iterator(memory);
    }
    const_iterator end() const {
        return const_iterator(memory + length);
    }
    const_iterator cbegin() const {
        return begin();
    }
    const_iterator cend() const {
        return end();
    }
    reverse_iterator rbegin() {
        return reverse_iterator(end());
    }
    reverse_iterator rend() {
        return reverse_iterator(begin());
    }
    pointer data() {
        return pointer(memory);
    }
    const_pointer data() const {
        return const_pointer(memory);
    }
    size_t size() const {
        return length;
    }
    size_t capacity() const {
        return room;
    }
    bool empty() const {
        return length == 0;
    }
    reference operator[](size_t i) {
        if constexpr (universal)
            return memory[i];
        else
            return reference(memory + i);
    }
    const_reference operator[](size_t i) const {
        if constexpr (universal)
            return memory[i];
        else
            return const_reference(memory + i);
    }
    reference front() {
        return (*this)[0];
    }
    reference back() {
        return (*this)[length - 1];
    }

    void reserve(size_t n) {
        if (n <= room)
            return;
        T* larger = nullptr;
        if constexpr (universal)
            cudaMallocManaged(&larger, n * sizeof(T));
        else
            cudaMalloc(&larger, n * sizeof(T));
        if (length)
            cudaMemcpy((void*)larger, (const void*)memory, length * sizeof(T),
                       cudaMemcpyDeviceToDevice);
        if (memory)
            cudaFree(memory);
        memory = larger;
        room = n;
    }
    void resize(size_t n, const T& v = T()) {
        reserve(n);
        if (n > length)
            thrust::fill(iterator(memory + length), iterator(memory + n), v);
        length = n;
    }
    template <class I, std::enable_if_t<!std::is_arithmetic_v<I>, int> = 0>
    void assign(I first, I last) {
        size_t n = last - first;
        reserve(n);
        length = n;
        thrust::copy(first, last, begin());
    }
    void assign(size_t n, const T& v) {
        length = 0;
        resize(n, v);
    }
    void push_back(const T& v) {
        if (length == room)
            reserve(room ? 2 * room : 4);
        (*this)[length++] = v;
    }
    void pop_back() {
        length--;
    }
    void clear() {
        length = 0;
    }
    void shrink_to_fit() {}
    void swap(device_vector& v) {
        std::swap(memory, v.memory);
        std::swap(length, v.length);
        std::swap(room, v.room);
    }
    iterator erase(iterator first, iterator last) {
        std::ptrdiff_t at = first - begin();
        thrust::copy(last, end(), first);
        length -= last - first;
        return begin() + at;
    }
    iterator erase(iterator at) {
        return erase(at, at + 1);
    }
    template <class I, std::enable_if_t<!std::is_arithmetic_v<I>, int> = 0>
    void insert(iterator at, I first, I last) {
        size_t before = at - begin(), n = last - first;
        device_vector tail(at, end());
        resize(length + n);
        thrust::copy(first, last, begin() + before);
        thrust::copy(tail.begin(), tail.end(), begin() + before + n);
    }
    iterator insert(iterator at, const T& v) {
        std::ptrdiff_t before = at - begin();
        insert(at, &v, &v + 1);
        return begin() + before;
    }
    friend bool operator==(const device_vector& a, const device_vector& b) {
        return a.size() == b.size() && thrust::equal(a.begin(), a.end(), b.begin());
    }
    friend bool operator!=(const device_vector& a, const device_vector& b) {
        return !(a == b);
    }
    friend void swap(device_vector& a, device_vector& b) {
        a.swap(b);
    }
};
template <class T, class A>
bool operator==(const device_vector<T, A>& d, const std::vector<T>& h) {
    return host_vector<T>(d) == h;
}
template <class T, class A>
bool operator==(const std::vector<T>& h, const device_vector<T, A>& d) {
    return d == h;
}
}  // namespace thrust
#include "../../macros_back.inc"
