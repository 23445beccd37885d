// wgmma: 128 threads multiply tiles in shared memory. The products of a group are made when all
// threads of the warp group wait for it, the latest that is allowed; what had not come when a
// product was queued, it has read then. Source: PTX ISA, "Asynchronous Warpgroup Level Matrix
// Instructions".
#include <algorithm>
#include "asynchronous.h"
#include "numbers.h"

namespace cuda_cpu {
using namespace ptx;
namespace {
const int threads = 128, rows = 64, depth_bytes = 32;

// A tile in shared memory as its descriptor says. Layouts: PTX ISA, "Shared memory matrix layout";
// distances in bytes.
struct Tile {
    unsigned start, across, down, base, swizzle;  // swizzle: 0 none, else bytes of a row
    bool turned;  // rows along the other dimension than k
    explicit Tile(u64 descriptor, bool is_turned)
        : start(unsigned(descriptor & 0x3fff) << 4),
          across(unsigned(descriptor >> 16 & 0x3fff) << 4),
          down(unsigned(descriptor >> 32 & 0x3fff) << 4),
          base(unsigned(descriptor >> 49 & 7)),
          turned(is_turned) {
        const unsigned widths[] = {0, 128, 64, 32};
        swizzle = widths[descriptor >> 62 & 3];
    }
    unsigned swizzled(unsigned address) const {
        if (!swizzle)
            return address;
        return address ^ (((address >> 7) - base) & (swizzle / 16 - 1)) << 4;
    }
    // 16 bytes: of row `row` the part `part` along k; or, turned, of line `row` along k the part.
    unsigned piece(unsigned row, unsigned part) const {
        unsigned inner = row % 8;
        if (!turned && !swizzle)
            return start + row / 8 * down + inner * 16 + part * across;
        if (!turned)
            return swizzled(start + row / 8 * down + inner * swizzle + part * 16);
        if (!swizzle)
            return start + part * down + inner * 16 + row / 8 * across;
        unsigned wide = swizzle / 16;
        return swizzled(start + part / wide * across + row / 8 * down + inner * swizzle +
                        part % wide * 16);
    }
};
// Calls f(pointer to 16 bytes, row, part) for all of a tile that is `wide` along m or n.
template <class F>
void each_piece(const Block& b, const Tile& t, int wide, int bytes, F f) {
    int lines = t.turned ? depth_bytes / bytes : wide;
    int parts = t.turned ? wide * bytes / 16 : depth_bytes / 16;
    for (int row = 0; row < lines; ++row)
        for (int part = 0; part < parts; ++part)
            f(shared_at(b, t.piece(unsigned(row), unsigned(part))), row, part);
}
// The tile's numbers, k by k: result[k * wide + i].
std::vector<float> numbers_of(const Block& b, u64 descriptor, bool turned, int wide, int k,
                              Number kind) {
    std::vector<float> result(size_t(wide) * k);
    int bytes = bytes_of(kind), each = 16 / bytes;
    each_piece(b, Tile(descriptor, turned), wide, bytes, [&](const char* p, int row, int part) {
        for (int e = 0; e < each; ++e) {
            int along = part * each + e;
            float value = number_at<float>(p, e, kind);
            result[turned ? size_t(row) * wide + along : size_t(along) * wide + row] = value;
        }
    });
    return result;
}
std::vector<float> left_of(const Block& b, const Product& p) {
    const WgmmaShape& s = p.shape;
    if (!s.a_in_registers)
        return numbers_of(b, p.a, s.a_turned, rows, s.k, s.a);
    std::vector<float> result(size_t(rows) * s.k);
    int each = 4 / bytes_of(s.a);
    for (int t = 0; t < threads; ++t)
        for (int i = 0; i < 4; ++i)
            for (int e = 0; e < each; ++e) {
                int row = t / 32 * 16 + t % 32 / 4 + i % 2 * 8;
                int k = i / 2 * 4 * each + t % 4 * each + e;
                result[size_t(k) * rows + row] = number_at<float>(&p.parts[t].a[i], e, s.a);
            }
    return result;
}
std::vector<float> right_of(const Block& b, const Product& p) {
    return numbers_of(b, p.b, p.shape.b_turned, p.shape.n, p.shape.k, p.shape.b);
}

// ---- the product of a whole warp group
void* sum_place(const Product::Part& part, int i) {
    return part.sums ? part.sums + i : part.places[size_t(i)];
}
template <class Sum>
struct Sums {
    const Product& p;
    int n;
    std::vector<Sum> all;
    Number kind;
    explicit Sums(const Product& product) : p(product), n(product.shape.n), all(size_t(rows) * n) {
        kind = p.shape.is_int ? Number::s32 : p.shape.f16_sum ? Number::f16 : Number::f32;
    }
    // Calls f(sum, register, which number of the register) for all that a thread holds.
    template <class F>
    void of_thread(int t, F f) {
        int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
        for (int i = 0; i < n / 2; ++i) {
            Sum& sum = all[size_t(row + i / 2 % 2 * 8) * n + i / 4 * 8 + column + i % 2];
            if (kind == Number::f16)
                f(sum, sum_place(p.parts[t], i / 2), i % 2);
            else
                f(sum, sum_place(p.parts[t], i), 0);
        }
    }
};
template <class Sum>
__attribute__((optimize("O3"))) void add_row(Sum* sum, const float* right, float left, int n) {
    for (int j = 0; j < n; ++j)
        sum[j] += Sum(left) * Sum(right[j]);
}
template <class Sum>
void make(const Product& p, const std::vector<float>& left, const std::vector<float>& right) {
    Sums<Sum> sums(p);
    int n = p.shape.n;
    for (int t = 0; t < threads; ++t)
        if (p.parts[t].came && p.parts[t].add)
            sums.of_thread(t, [&](Sum& sum, void* place, int i) {
                sum = number_at<Sum>(place, i, sums.kind);
            });
    float sign = p.shape.minus_a != p.shape.minus_b ? -1.0f : 1.0f;
    for (int row = 0; row < rows; ++row)
        for (int k = 0; k < p.shape.k; ++k)
            add_row(&sums.all[size_t(row) * n], &right[size_t(k) * n],
                    sign * left[size_t(k) * rows + row], n);
    for (int t = 0; t < threads; ++t)
        if (p.parts[t].came)
            sums.of_thread(
                t, [&](Sum& sum, void* place, int i) { put_number(place, i, sums.kind, sum); });
}
void make(Block& b, Product& p) {
    if (!p.early) {
        p.left = left_of(b, p);
        p.right = right_of(b, p);
    }
    if (p.shape.is_int)
        make<int>(p, p.left, p.right);
    else
        make<float>(p, p.left, p.right);
}

template <class F>
void each_operand_piece(const Block& b, const Product& p, F f) {
    auto visit = [&](const char* piece, int, int) { f(piece); };
    if (!p.shape.a_in_registers)
        each_piece(b, Tile(p.a, p.shape.a_turned), rows, bytes_of(p.shape.a), visit);
    each_piece(b, Tile(p.b, p.shape.b_turned), p.shape.n, bytes_of(p.shape.b), visit);
}
}  // namespace

bool product_reads(const Block& b, const Product& p, const char* start, size_t bytes) {
    bool found = false;
    if (!p.early && p.low < start + bytes && start < p.high)
        each_operand_piece(
            b, p, [&](const char* piece) { found |= piece + 16 > start && piece < start + bytes; });
    return found;
}
static const Flying* not_yet_come(const Block& b, const Product& p) {
    const Flying* found = nullptr;
    for (const Flying& f : b.async->flying)
        if (f.bytes && !found && p.low < f.to + f.bytes && f.to < p.high)
            each_operand_piece(b, p, [&](const char* piece) {
                if (piece + 16 > f.to && piece < f.to + f.bytes)
                    found = &f;
            });
    return found;
}
static void check_operands(Block& b, const Product& p) {
    const char* from = b.hot.dynamic_shared;
    const char* end = from + b.grid->shared;
    each_operand_piece(b, p, [&](const char* piece) {
        if (piece >= from ? piece + 16 > end : piece < b.memory + 256)
            refuse("out-of-bounds", p.at,
                   "a descriptor of this wgmma leads outside of the %zu bytes of dynamic shared "
                   "memory: its start or its distances are wrong",
                   b.grid->shared);
    });
    if (checking)
        record_flight(b, p.low, 0, p.at, true, hot.tid);
    if (checking)
        checks_tile_swizzle(b, p);
    if (checking)
        each_operand_piece(
            b, p, [&](const char* piece) { checks_engine_reads(piece, 16, p.at, "wgmma"); });
}

// The product that this thread's call belongs to: the first thread of the warp group makes it.
static Product& product_of(Block& b, WarpGroup& w, int thread, const WgmmaShape& shape, u64 a,
                           u64 t, Site at) {
    size_t index = size_t(w.issued[thread]++ - w.first);
    if (index == w.products.size()) {
        w.products.emplace_back();
        Product& p = w.products.back();
        p.shape = shape;
        p.a = a;
        p.b = t;
        p.at = at;
        p.parts.resize(threads);
        p.early = false;
        p.low = b.memory + b.hot.shared_bytes;
        p.high = b.memory;
        each_operand_piece(b, p, [&](const char* piece) {
            p.low = std::min(p.low, piece);
            p.high = std::max(p.high, piece + 16);
        });
        check_operands(b, p);
        if (not_yet_come(b, p)) {
            p.left = left_of(b, p);
            p.right = right_of(b, p);
            p.early = true;
        }
    }
    Product& p = w.products[index];
    if (p.a != a || p.b != t || p.at.line != at.line || p.shape.n != shape.n)
        refuse("wgmma-divergence", at,
               "the threads of a warp group call wgmma with different descriptors, or in different "
               "lines (%d): all 128 must do the same",
               p.at.line);
    return p;
}

static bool all_wait(const Block& b, const WarpGroup& w, unsigned group) {
    for (unsigned t = 0; t < unsigned(threads); ++t) {
        unsigned tid = group * threads + t;
        bool ended = b.warps[tid >> 5].exited >> (tid & 31) & 1;
        if (tid < hot.count && !ended && !w.waits[t])
            return false;
    }
    return true;
}
void checks_product_done(Block& b, const Product& p) {
    if (checking && !p.early)
        each_operand_piece(b, p, [&](const char* piece) { checks_store_read(piece, 16, p.at); });
}
static void finish_groups(Block& b, WarpGroup& w) {
    unsigned long long until = ~0ull;
    for (int t = 0; t < threads; ++t) {
        if (!w.waits[t])
            continue;
        std::vector<unsigned>& g = w.groups[t];
        unsigned long long mine = w.first;
        if (g.size() > w.wanted[t]) {
            auto end = g.end() - w.wanted[t];
            mine = end[-1];
            g.erase(g.begin(), end);
        }
        until = std::min(until, mine);
    }
    while (w.first < until && !w.products.empty()) {
        make(b, w.products.front());
        if (checking)
            checks_product_done(b, w.products.front());
        if (checking)
            record_flight(b, w.products.front().low, 0, w.products.front().at, false, hot.tid);
        w.products.erase(w.products.begin());
        ++w.first;
    }
}

namespace ptx {
void wgmma(const WgmmaShape& shape, void* const* sums, const u32* a, u64 a_tile, u64 b_tile,
           bool add, Site at) {
    Block& b = *hot.block;
    current_thread();  // from now on the block's threads are accounted for
    if (hot.count % threads)
        refuse("wgmma", at, "wgmma needs warp groups of 128 threads; the block has %u threads",
               hot.count);
    WarpGroup& w = own_async().groups[hot.tid / threads];
    int thread = int(hot.tid % threads);
    if (!w.fenced[thread])
        refuse("wgmma-fence", at,
               "this wgmma comes without wgmma.fence: the registers (and what threads have written "
               "to them) are not ready");
    Product& p = product_of(b, w, thread, shape, a_tile, b_tile, at);
    Product::Part& part = p.parts[size_t(thread)];
    part.came = true;
    part.add = add;
    if (shape.a_in_registers)
        memcpy(part.a, a, sizeof part.a);
    int registers = shape.f16_sum ? shape.n / 4 : shape.n / 2;
    part.sums = static_cast<float*>(sums[0]);
    for (int i = 0; i < registers && part.sums; ++i)
        if (sums[i] != part.sums + i)
            part.sums = nullptr;
    if (!part.sums)
        for (int i = 0; i < registers; ++i)
            part.places.push_back(static_cast<float*>(sums[i]));
}
void wgmma_fence() {
    own_async().groups[hot.tid / threads].fenced[hot.tid % threads] = true;
}
void wgmma_commit() {
    WarpGroup& w = own_async().groups[hot.tid / threads];
    w.groups[hot.tid % threads].push_back(w.issued[hot.tid % threads]);
}
void wgmma_wait(u32 pending, Site at) {
    Block& b = *hot.block;
    current_thread();
    unsigned group = hot.tid / threads;
    WarpGroup& w = own_async().groups[group];
    unsigned thread = hot.tid % threads;
    w.waits[thread] = true;
    w.wanted[thread] = pending;
    if (!all_wait(b, w, group)) {
        wait_in(w.waiting, at_wgmma, at);
        return;
    }
    finish_groups(b, w);
    if (checking) {
        unsigned all[threads];
        unsigned n = 0;
        for (unsigned t = 0; t < unsigned(threads); ++t)
            if (w.waits[t])
                all[n++] = group * threads + t;
        checks_meet(b, all, n);
    }
    std::fill(w.waits, w.waits + threads, false);
    wake(b, w.waiting);
}
}  // namespace ptx
}  // namespace cuda_cpu
