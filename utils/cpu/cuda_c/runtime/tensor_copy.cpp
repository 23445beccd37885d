// Tensor copies (TMA): boxes of a tensor that a tensor map describes, swizzled on their way to
// shared memory; zeros (or NaN) where they lie outside. Source: PTX ISA, "Tensors"; CUDA Driver
// API, "Tensor Map Object Management".
#include <algorithm>
#include <mutex>
#include "../include/detail/ptx/arithmetic.h"
#include "../include/detail/ptx/tensor_map.h"
#include "asynchronous.h"

namespace cuda_cpu {
namespace ptx {
// ---- elements that are stored or reduced in global memory
template <class T>
static T reduced(T old, T value, Reduce how) {
    if (how == Reduce::add)
        return add(old, value);
    if (how == Reduce::min)
        return smaller(old, value);
    if (how == Reduce::max)
        return larger(old, value);
    if constexpr (std::is_integral_v<T>) {
        if (how == Reduce::bit_and)
            return old & value;
        if (how == Reduce::bit_or)
            return old | value;
        if (how == Reduce::bit_xor)
            return old ^ value;
        if (how == Reduce::inc)
            return old >= value ? T(0) : T(old + 1);
        return old == 0 || old > value ? value : T(old - 1);
    }
    return value;
}
template <class T>
static void reduce_all(char* to, const char* from, size_t bytes, Reduce how) {
    for (size_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
        T old, value;
        memcpy(&old, to + i, sizeof(T));
        memcpy(&value, from + i, sizeof(T));
        T result = reduced(old, value, how);
        memcpy(to + i, &result, sizeof(T));
    }
}
}  // namespace ptx

void store_elements(char* to, const char* from, size_t bytes, ptx::Reduce how,
                    ptx::ElementType element) {
    using namespace ptx;
    if (how == Reduce::none) {
        memcpy(to, from, bytes);
        return;
    }
    static std::mutex one;  // reductions of several cores
    std::lock_guard<std::mutex> l(one);
    switch (element) {
        case ElementType::u8:
            return reduce_all<u8>(to, from, bytes, how);
        case ElementType::u16:
            return reduce_all<u16>(to, from, bytes, how);
        case ElementType::u32:
            return reduce_all<u32>(to, from, bytes, how);
        case ElementType::s32:
            return reduce_all<s32>(to, from, bytes, how);
        case ElementType::u64:
            return reduce_all<u64>(to, from, bytes, how);
        case ElementType::s64:
            return reduce_all<s64>(to, from, bytes, how);
        case ElementType::f16:
            return reduce_all<f16>(to, from, bytes, how);
        case ElementType::bf16:
            return reduce_all<bf16>(to, from, bytes, how);
        case ElementType::f64:
            return reduce_all<f64>(to, from, bytes, how);
        default:
            return reduce_all<f32>(to, from, bytes, how);
    }
}

// ---- boxes
namespace {
struct Box {
    TensorMapBits map;
    ptx::Place at;
    unsigned element, row;  // bytes
    unsigned rows;

    long size(int i) const {
        return map.sizes[i] ? long(map.sizes[i]) : 1l << 32;
    }
    // The element 0 of the innermost dimension, or null where the others lie outside.
    char* line(const long* c) const {
        char* p = reinterpret_cast<char*>(map.address);
        for (int i = 1; i < map.rank; ++i) {
            if (c[i] < 0 || c[i] >= size(i))
                return nullptr;
            p += c[i] * long(map.strides[i - 1]);
        }
        return p;
    }
};
// Where in a tensor the rows of a box begin, one after the other.
template <class F>
void each_line(const Box& b, F f) {
    const TensorMapBits& m = b.map;
    long c[5] = {};
    for (unsigned row = 0; row < b.rows; ++row) {
        unsigned rest = row;
        for (int i = 1; i < m.rank; ++i) {
            unsigned many = (m.box[i] + m.steps[i] - 1) / m.steps[i];
            c[i] = b.at.c[i] + long(rest % many) * m.steps[i];
            rest /= many;
        }
        f(row, b.line(c));
    }
}
// im2col: from the first pixel on along w, then h (then d), then to the next picture, within the
// bounding box; each pixel moved by the offsets.
template <class F>
void each_pixel(const Box& b, F f) {
    const TensorMapBits& m = b.map;
    int spatial = m.rank - 2;
    long pixel[5], c[5];
    for (int i = 0; i < m.rank; ++i)
        pixel[i] = b.at.c[i];
    for (unsigned row = 0; row < b.rows; ++row) {
        for (int i = 1; i < m.rank; ++i)
            c[i] = pixel[i] + (i <= spatial ? b.at.offset[i - 1] : 0);
        f(row, b.line(c));
        int i = 1;
        for (; i <= spatial; ++i) {
            pixel[i] += m.steps[i];
            if (pixel[i] < b.size(i) + m.upper[i - 1])
                break;
            pixel[i] = m.lower[i - 1];
        }
        if (i > spatial)
            ++pixel[m.rank - 1];
    }
}
template <class F>
void each_row(const Box& b, F f) {
    if (b.map.pixels)
        each_pixel(b, f);
    else
        each_line(b, f);
}
}  // namespace

static Box box_of(unsigned long long map, ptx::Place place, int rank, bool pixels, Site at) {
    Box b;
    if (map % 64)
        refuse("misaligned", at,
               "a tensor map lies at a multiple of 64 bytes: pass it as "
               "const __grid_constant__ CUtensorMap");
    memcpy(&b.map, reinterpret_cast<const void*>(map), sizeof b.map);
    if (b.map.mark != TensorMapBits::known)
        refuse("tensor-map", at,
               "this is no tensor map: it is made on the host with cuTensorMapEncodeTiled and "
               "passed to the kernel by value, as const __grid_constant__ CUtensorMap");
    if (b.map.rank != rank || bool(b.map.pixels) != pixels)
        refuse("tensor-map", at, "a copy of %d dimensions%s with a tensor map of %d%s", rank,
               pixels ? " (im2col)" : "", b.map.rank, b.map.pixels ? " (im2col)" : "");
    b.at = place;
    b.element = tensor_element_bytes(b.map.type);
    b.row = b.element * (pixels ? b.map.elements : b.map.box[0]);
    b.rows = pixels ? b.map.box[1] : 1;
    for (int i = 1; i < rank && !pixels; ++i)
        b.rows *= (b.map.box[i] + b.map.steps[i] - 1) / b.map.steps[i];
    return b;
}
// The address of 16 bytes of a box in shared memory: the swizzle exchanges them by upper bits.
static unsigned swizzled(unsigned address, unsigned swizzle) {
    unsigned mask = (1u << swizzle) - 1;
    return address ^ (address >> 7 & mask) << 4;
}
// How many elements of a row lie inside, and from which on.
static void inside(const Box& b, long& first, long& last) {
    long x = b.at.c[0];
    long wide = b.row / b.element;
    first = std::min(std::max(-x, 0l), wide);
    last = std::max(first, std::min(b.size(0) - x, wide));
}
static void fill_outside(const Box& b, char* row) {
    memset(row, 0, b.row);
    if (!b.map.nan_fill)
        return;
    for (unsigned i = 0; i < b.row; i += b.element) {
        unsigned long long nan = b.element == 8   ? 0x7ff8000000000000ull
                                 : b.element == 4 ? 0x7fffffffull
                                                  : 0x7fffull;
        memcpy(row + i, &nan, b.element);
    }
}
static void bring(const Box& b, Block& to, char* place) {
    unsigned base = address_of(to, place);
    long first, last;
    inside(b, first, last);
    char row[4096];
    each_row(b, [&](unsigned number, const char* line) {
        fill_outside(b, row);
        if (line && last > first)
            memcpy(row + first * b.element, line + (b.at.c[0] + first) * long(b.element),
                   size_t(last - first) * b.element);
        for (unsigned i = 0; i < b.row; i += 16) {
            unsigned address = swizzled(base + number * b.row + i, b.map.swizzle);
            memcpy(place + (int(address) - int(base)), row + i, 16);
        }
    });
}
static void take(const Box& b, Block& from, const char* place, char* rows) {
    unsigned base = address_of(from, place);
    for (unsigned i = 0; i < b.row * b.rows; i += 16) {
        unsigned address = swizzled(base + i, b.map.swizzle);
        memcpy(rows + i, place + (int(address) - int(base)), 16);
    }
}
static void put(const Box& b, const char* rows, ptx::Reduce how) {
    long first, last;
    inside(b, first, last);
    each_row(b, [&](unsigned number, char* line) {
        if (line && last > first)
            store_elements(line + (b.at.c[0] + first) * long(b.element),
                           rows + number * b.row + first * b.element,
                           size_t(last - first) * b.element, how, ptx::ElementType(b.map.type));
    });
}
static void check_box(const Box& b, const char* p, Site at) {
    size_t bytes = size_t(b.row) * b.rows;
    const unsigned step = 128;
    if (size_t(p) % step)
        refuse("misaligned", at,
               "a box of a tensor lies at a multiple of %u bytes of shared memory: declare it with "
               "__align__(1024)",
               step);
    const char* end = hot.dynamic_shared + hot.block->grid->shared;
    if (p >= hot.dynamic_shared && p < hot.shared + hot.shared_bytes && p + bytes > end)
        refuse("out-of-bounds", at,
               "this box of %zu bytes goes past the end of the %zu bytes of dynamic shared memory "
               "that the launch gives",
               bytes, hot.block->grid->shared);
}
// A GPU calls it an illegal instruction. PTX ISA does not say so; Triton's tutorial of tensor
// copies does (python/tutorials/gluon/04-tma.py: "The innermost coordinate must be 16-byte
// aligned").
static void check_start(const Box& b, Site at) {
    long bytes = b.at.c[0] * long(b.element);
    if (bytes % 16 == 0)
        return;
    refuse("tensor-coordinate", at,
           "this box begins %ld bytes from the start of a row (coordinate %ld, %u bytes each): it "
           "must be a multiple of 16 bytes; a GPU reports an illegal instruction",
           bytes, long(b.at.c[0]), b.element);
}
// A load fills what lies before a tensor; a store there is an illegal instruction, too. PTX ISA
// does not say so; an H200 does.
static void check_not_before(const Box& b, int rank, Site at) {
    for (int d = 0; d < rank; ++d)
        if (b.at.c[d] < 0)
            refuse("tensor-coordinate", at,
                   "this box begins before the tensor (coordinate %d is %ld): a store takes none "
                   "below 0; a GPU reports an illegal instruction",
                   d, long(b.at.c[d]));
}
// That the tensor's memory is there is seen when the copy begins.
static void touch_tensor(const Box& b, bool writes, bool atomic, Site at) {
    long first, last;
    inside(b, first, last);
    engine_at = at;
    each_row(b, [&](unsigned, const char* line) {
        if (!line || last <= first)
            return;
        const volatile char* p = line + (b.at.c[0] + first) * long(b.element);
        size_t bytes = size_t(last - first) * b.element;
        if (checking)
            checks_global(const_cast<const char*>(p), bytes, writes, atomic, at);
        (void)p[0];
        (void)p[bytes - 1];
    });
    engine_at = {"", 0};
}

namespace ptx {
void tensor_load(u64 to, u64 map, Place place, int rank, bool pixels, u64 barrier, u32 blocks,
                 bool many, Site at) {
    Box b = box_of(map, place, rank, pixels, at);
    check_start(b, at);
    touch_tensor(b, false, false, at);
    size_t bytes = size_t(b.row) * b.rows;
    unsigned count = hot.block->cluster ? unsigned(hot.block->cluster->blocks.size()) : 1;
    for (unsigned target = 0; target < (many ? 16u : 1u); ++target) {
        if (many && !(blocks >> target & 1))
            continue;
        if (many && target >= count)
            refuse("out-of-bounds", at, "multicast to block %u of a cluster of %u", target, count);
        InShared d = find_shared(many ? map_address(to, target, at) : to, at);
        InShared s = find_shared(many ? map_address(barrier, target, at) : barrier, at);
        if (d.block == hot.block)
            check_box(b, d.p, at);
        if (s.block != d.block)
            refuse("cluster", at, "a copy and its barrier lie in the same block");
        MBarrier& m = barrier_at(s.p, *s.block, at, "cp.async.bulk.tensor");
        Block* block = d.block;
        char* p = d.p;
        if (checking)
            checks_box(*block, p, bytes, b.map.swizzle, b.row, at);
        fly(*block, {p, bytes, &m, s.p, m.phase, at, [=] { bring(b, *block, p); }});
    }
}
void tensor_store(u64 map, Place place, int rank, u64 from, Reduce how, bool pixels, Site at) {
    Box b = box_of(map, place, rank, pixels, at);
    if (pixels)
        refuse("tensor-map", at, "the CPU runtime has no im2col stores");
    InShared s = find_shared(from, at);
    check_box(b, s.p, at);
    check_start(b, at);
    check_not_before(b, rank, at);
    touch_tensor(b, true, how != Reduce::none, at);
    size_t bytes = size_t(b.row) * b.rows;
    if (checking)
        checks_engine_reads(s.p, bytes, at, "copy");
    auto held = std::make_shared<std::vector<char>>(bytes);
    const char* p = s.p;
    Block* block = s.block;
    own_async().stores[hot.tid].open.push_back({p, bytes, true, false, at,
                                                [=] { take(b, *block, p, held->data()); },
                                                [=] { put(b, held->data(), how); }});
}
}  // namespace ptx
}  // namespace cuda_cpu
