// NVTX's C++ interface: ranges that end with their scope. Nothing is recorded here.
#pragma once
#include <cstdint>
#include "nvToolsExt.h"

namespace nvtx3 {
struct domain {
    struct global {};
};
struct rgb {
    uint8_t red, green, blue;
    constexpr rgb(uint8_t r, uint8_t g, uint8_t b) : red(r), green(g), blue(b) {}
};
struct argb {
    uint8_t alpha, red, green, blue;
    constexpr argb(uint8_t a, uint8_t r, uint8_t g, uint8_t b)
        : alpha(a), red(r), green(g), blue(b) {}
};
struct color {
    constexpr explicit color(uint32_t) {}
    constexpr color(rgb) {}
    constexpr color(argb) {}
};
struct category {
    constexpr explicit category(uint32_t) {}
};
struct payload {
    template <class T>
    constexpr explicit payload(T) {}
};
template <class Domain>
struct named_category_in : category {
    named_category_in(uint32_t id, const char*) : category(id) {}
};
using named_category = named_category_in<domain::global>;
struct message {
    template <class Text>
    constexpr message(const Text&) {}
};
template <class Domain>
struct registered_string_in : message {
    using message::message;
    template <class Message>
    static const registered_string_in& get() {
        static const registered_string_in text(Message::message);
        return text;
    }
};
using registered_string = registered_string_in<domain::global>;
struct event_attributes {
    template <class... A>
    constexpr explicit event_attributes(const A&...) {}
};

template <class Domain = domain::global>
struct scoped_range_in {
    template <class... A>
    explicit scoped_range_in(const A&...) {}
    scoped_range_in(const scoped_range_in&) = delete;
    ~scoped_range_in() {}
};
using scoped_range = scoped_range_in<>;
template <class Domain = domain::global>
struct unique_range_in {
    template <class... A>
    explicit unique_range_in(const A&...) {}
    unique_range_in(unique_range_in&&) = default;
    ~unique_range_in() {}
};
using unique_range = unique_range_in<>;
struct range_handle {};
template <class Domain = domain::global, class... A>
range_handle start_range_in(const A&...) {
    return {};
}
template <class... A>
range_handle start_range(const A&...) {
    return {};
}
template <class Domain = domain::global>
void end_range_in(range_handle) {}
inline void end_range(range_handle) {}
template <class Domain = domain::global, class... A>
void mark_in(const A&...) {}
template <class... A>
void mark(const A&...) {}
}  // namespace nvtx3

#define NVTX3_FUNC_RANGE() ::nvtx3::scoped_range nvtx3_of_this_function(__func__)
#define NVTX3_FUNC_RANGE_IN(D) ::nvtx3::scoped_range_in<D> nvtx3_of_this_function(__func__)
