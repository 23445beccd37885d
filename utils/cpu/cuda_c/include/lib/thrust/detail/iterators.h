// Device pointers and the iterators that compute what they point at.
//
// raw(x) takes the wrapping off: a device_ptr becomes the pointer in it, also inside zips,
// transforms and so on; all else stays. is_device<X> tells whether there was any. Algorithms use
// both, see algorithms.h.
#pragma once
#include <cstddef>
#include <functional>
#include <iterator>
#include <tuple>
#include <type_traits>
#include <utility>
#include "../../macros_aside.inc"

namespace thrust {
template <class... T>
using tuple = std::tuple<T...>;
template <class A, class B>
using pair = std::pair<A, B>;
using std::get;
using std::make_pair;
using std::make_tuple;
using std::tie;
template <size_t I, class T>
using tuple_element = std::tuple_element<I, T>;
template <class T>
using tuple_size = std::tuple_size<T>;
template <class I>
using iterator_value = std::iterator_traits<I>;

// One element on the device. The host reads and writes it by a copy, a kernel directly.
template <class T>
class device_reference {
    T* p;

  public:
    using value_type = std::remove_cv_t<T>;
    explicit device_reference(T* p) : p(p) {}
    device_reference(const device_reference&) = default;
    operator value_type() const {
        if (::cuda_cpu::in_kernel())
            return *p;
        value_type v;
        cudaMemcpy((void*)&v, (const void*)p, sizeof(T), cudaMemcpyDeviceToHost);
        return v;
    }
    const device_reference& operator=(const value_type& v) const {
        if (::cuda_cpu::in_kernel())
            *const_cast<value_type*>(p) = v;
        else
            cudaMemcpy((void*)p, (const void*)&v, sizeof(T), cudaMemcpyHostToDevice);
        return *this;
    }
    const device_reference& operator=(const device_reference& other) const {
        return *this = value_type(other);
    }
    template <class U>
    const device_reference& operator+=(const U& v) const {
        return *this = value_type(value_type(*this) + v);
    }
    template <class U>
    const device_reference& operator-=(const U& v) const {
        return *this = value_type(value_type(*this) - v);
    }
    template <class U>
    const device_reference& operator*=(const U& v) const {
        return *this = value_type(value_type(*this) * v);
    }
    template <class U>
    const device_reference& operator/=(const U& v) const {
        return *this = value_type(value_type(*this) / v);
    }
    const device_reference& operator++() const {
        return *this += 1;
    }
    const device_reference& operator--() const {
        return *this -= 1;
    }
    T* operator&() const {
        return p;
    }
};

// What every random-access iterator here can do, from three functions of its own: advance(n),
// distance(other), and dereference().
template <class Self, class Value, class Reference>
struct IteratorBase {
    using iterator_category = std::random_access_iterator_tag;
    using value_type = Value;
    using difference_type = std::ptrdiff_t;
    using reference = Reference;
    using pointer = void;
    Self& self() {
        return static_cast<Self&>(*this);
    }
    const Self& self() const {
        return static_cast<const Self&>(*this);
    }
    Reference operator*() const {
        return self().dereference();
    }
    Reference operator[](difference_type n) const {
        return *(self() + n);
    }
    Self& operator+=(difference_type n) {
        return self().advance(n), self();
    }
    Self& operator-=(difference_type n) {
        return self().advance(-n), self();
    }
    Self& operator++() {
        return *this += 1;
    }
    Self& operator--() {
        return *this -= 1;
    }
    Self operator++(int) {
        Self old = self();
        *this += 1;
        return old;
    }
    Self operator--(int) {
        Self old = self();
        *this -= 1;
        return old;
    }
    friend Self operator+(Self i, difference_type n) {
        return i += n;
    }
    friend Self operator+(difference_type n, Self i) {
        return i += n;
    }
    friend Self operator-(Self i, difference_type n) {
        return i -= n;
    }
    friend difference_type operator-(const Self& a, const Self& b) {
        return b.distance(a);
    }
    friend bool operator==(const Self& a, const Self& b) {
        return b.distance(a) == 0;
    }
    friend bool operator!=(const Self& a, const Self& b) {
        return b.distance(a) != 0;
    }
    friend bool operator<(const Self& a, const Self& b) {
        return b.distance(a) < 0;
    }
    friend bool operator>(const Self& a, const Self& b) {
        return b.distance(a) > 0;
    }
    friend bool operator<=(const Self& a, const Self& b) {
        return b.distance(a) <= 0;
    }
    friend bool operator>=(const Self& a, const Self& b) {
        return b.distance(a) >= 0;
    }
};

template <class T>
class device_ptr : public IteratorBase<device_ptr<T>, std::remove_cv_t<T>, device_reference<T>> {
    T* p = nullptr;

  public:
    device_ptr() = default;
    device_ptr(std::nullptr_t) {}
    explicit device_ptr(T* p) : p(p) {}
    template <class U, std::enable_if_t<std::is_convertible_v<U*, T*>, int> = 0>
    device_ptr(const device_ptr<U>& other) : p(other.get()) {}
    T* get() const {
        return p;
    }
    device_reference<T> dereference() const {
        return device_reference<T>(p);
    }
    void advance(std::ptrdiff_t n) {
        p += n;
    }
    std::ptrdiff_t distance(const device_ptr& other) const {
        return other.p - p;
    }
    explicit operator bool() const {
        return p != nullptr;
    }
};
template <class T>
device_ptr<T> device_pointer_cast(T* p) {
    return device_ptr<T>(p);
}
template <class T>
device_ptr<T> device_pointer_cast(const device_ptr<T>& p) {
    return p;
}
template <class T>
T* raw_pointer_cast(const device_ptr<T>& p) {
    return p.get();
}
template <class T>
T* raw_pointer_cast(T* p) {
    return p;
}
template <class T>
T& raw_reference_cast(const device_reference<T>& r) {
    return *&r;
}
template <class T>
device_ptr<T> device_malloc(size_t n) {
    T* p = nullptr;
    cudaMalloc(&p, n * sizeof(T));
    return device_ptr<T>(p);
}
template <class T>
void device_free(device_ptr<T> p) {
    cudaFree((void*)p.get());
}

template <class T>
struct counting_iterator : IteratorBase<counting_iterator<T>, T, T> {
    T value;
    counting_iterator(T v = T()) : value(v) {}
    T dereference() const {
        return value;
    }
    void advance(std::ptrdiff_t n) {
        value = T(value + n);
    }
    std::ptrdiff_t distance(const counting_iterator& o) const {
        return std::ptrdiff_t(o.value) - std::ptrdiff_t(value);
    }
};
template <class T>
counting_iterator<T> make_counting_iterator(T v) {
    return v;
}

template <class T>
struct constant_iterator : IteratorBase<constant_iterator<T>, T, T> {
    T value;
    std::ptrdiff_t index;
    constant_iterator(T v, std::ptrdiff_t i = 0) : value(v), index(i) {}
    T dereference() const {
        return value;
    }
    void advance(std::ptrdiff_t n) {
        index += n;
    }
    std::ptrdiff_t distance(const constant_iterator& o) const {
        return o.index - index;
    }
};
template <class T>
constant_iterator<T> make_constant_iterator(T v) {
    return constant_iterator<T>(v);
}

struct Ignored {
    template <class T>
    const Ignored& operator=(const T&) const {
        return *this;
    }
};
template <class System = void>
struct discard_iterator : IteratorBase<discard_iterator<System>, Ignored, Ignored> {
    std::ptrdiff_t index;
    discard_iterator(std::ptrdiff_t i = 0) : index(i) {}
    Ignored dereference() const {
        return {};
    }
    void advance(std::ptrdiff_t n) {
        index += n;
    }
    std::ptrdiff_t distance(const discard_iterator& o) const {
        return o.index - index;
    }
};
inline discard_iterator<> make_discard_iterator(std::ptrdiff_t i = 0) {
    return i;
}

template <class F, class I>
using TransformResult = decltype(std::declval<F&>()(*std::declval<I>()));
template <class F, class I>
struct transform_iterator
    : IteratorBase<transform_iterator<F, I>, std::decay_t<TransformResult<F, I>>,
                   std::decay_t<TransformResult<F, I>>> {
    I base;
    mutable F function;  // its operator() need not be const
    transform_iterator(I i, F f) : base(i), function(f) {}
    std::decay_t<TransformResult<F, I>> dereference() const {
        return function(*base);
    }
    void advance(std::ptrdiff_t n) {
        base += n;
    }
    std::ptrdiff_t distance(const transform_iterator& o) const {
        return o.base - base;
    }
};
template <class I, class F>
transform_iterator<F, I> make_transform_iterator(I i, F f) {
    return {i, f};
}

template <class I, class Index>
struct permutation_iterator
    : IteratorBase<permutation_iterator<I, Index>, typename std::iterator_traits<I>::value_type,
                   decltype(*std::declval<I>())> {
    I base;
    Index index;
    permutation_iterator(I i, Index x) : base(i), index(x) {}
    decltype(*std::declval<I>()) dereference() const {
        return *(base + std::ptrdiff_t(*index));
    }
    void advance(std::ptrdiff_t n) {
        index += n;
    }
    std::ptrdiff_t distance(const permutation_iterator& o) const {
        return o.index - index;
    }
};
template <class I, class Index>
permutation_iterator<I, Index> make_permutation_iterator(I i, Index x) {
    return {i, x};
}

template <class I>
using reverse_iterator = std::reverse_iterator<I>;
template <class I>
reverse_iterator<I> make_reverse_iterator(I i) {
    return reverse_iterator<I>(i);
}

template <class Tuple>
struct zip_iterator;
template <class... I>
struct zip_iterator<std::tuple<I...>>
    : IteratorBase<zip_iterator<std::tuple<I...>>,
                   std::tuple<typename std::iterator_traits<I>::value_type...>,
                   std::tuple<decltype(*std::declval<I>())...>> {
    std::tuple<I...> iterators;
    zip_iterator(std::tuple<I...> i) : iterators(i) {}
    zip_iterator(I... i) : iterators(i...) {}
    const std::tuple<I...>& get_iterator_tuple() const {
        return iterators;
    }
    std::tuple<decltype(*std::declval<I>())...> dereference() const {
        return std::apply([](const I&... i) { return std::tuple<decltype(*i)...>(*i...); },
                          iterators);
    }
    void advance(std::ptrdiff_t n) {
        std::apply([n](I&... i) { ((i += n), ...); }, iterators);
    }
    std::ptrdiff_t distance(const zip_iterator& o) const {
        return std::get<0>(o.iterators) - std::get<0>(iterators);
    }
};
template <class... I>
zip_iterator<std::tuple<I...>> make_zip_iterator(std::tuple<I...> i) {
    return i;
}
template <class... I>
zip_iterator<std::tuple<I...>> make_zip_iterator(I... i) {
    return std::tuple<I...>(i...);
}
// Turns a function of several arguments into one of a tuple, for zips.
template <class F>
struct zip_function {
    F f;
    template <class Tuple>
    decltype(auto) operator()(Tuple&& t) const {
        return std::apply(f, std::forward<Tuple>(t));
    }
};
template <class F>
zip_function<F> make_zip_function(F f) {
    return {f};
}

namespace detail {
template <class X>
struct is_device : std::false_type {};
template <class T>
struct is_device<device_ptr<T>> : std::true_type {};
template <class F, class I>
struct is_device<transform_iterator<F, I>> : is_device<I> {};
template <class I, class X>
struct is_device<permutation_iterator<I, X>>
    : std::bool_constant<is_device<I>::value || is_device<X>::value> {};
template <class I>
struct is_device<std::reverse_iterator<I>> : is_device<I> {};
template <class... I>
struct is_device<zip_iterator<std::tuple<I...>>>
    : std::bool_constant<(is_device<I>::value || ...)> {};

template <class X>
X raw(const X& x) {
    return x;
}
template <class T>
T* raw(const device_ptr<T>& p) {
    return p.get();
}
template <class F, class I>
auto raw(const transform_iterator<F, I>& t);
template <class I, class X>
auto raw(const permutation_iterator<I, X>& p);
template <class I>
auto raw(const std::reverse_iterator<I>& r);
template <class... I>
auto raw(const zip_iterator<std::tuple<I...>>& z);
template <class F, class I>
auto raw(const transform_iterator<F, I>& t) {
    return make_transform_iterator(raw(t.base), t.function);
}
template <class I, class X>
auto raw(const permutation_iterator<I, X>& p) {
    return make_permutation_iterator(raw(p.base), raw(p.index));
}
template <class I>
auto raw(const std::reverse_iterator<I>& r) {
    return make_reverse_iterator(raw(r.base()));
}
template <class... I>
auto raw(const zip_iterator<std::tuple<I...>>& z) {
    return std::apply([](const I&... i) { return make_zip_iterator(std::make_tuple(raw(i)...)); },
                      z.iterators);
}
}  // namespace detail
}  // namespace thrust
#include "../../macros_back.inc"
