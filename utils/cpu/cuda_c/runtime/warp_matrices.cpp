// What the lanes of a warp do with matrices together: ldmatrix, stmatrix, mma.sync. Each is a
// meeting; the first lane to go on does the work of all. Source: PTX ISA, "Matrix fragments for
// mma", "ldmatrix", "stmatrix".
#include "../include/detail/warp.h"
#include "../include/detail/ptx/arithmetic.h"
#include "asynchronous.h"
#include "numbers.h"

namespace cuda_cpu {
namespace ptx {
namespace {
const unsigned whole = 0xffffffffu;

struct Rows {  // what a lane brings
    char* row;
    u32* registers;
};
// Meets the warp. True: the caller is the first to go on, and does the work.
template <class T>
bool meet_warp(const T& mine, Meeting*& m, const char* name, Site at) {
    m = meet(whole, op_matrix, reinterpret_cast<u64>(&mine), name, at);
    if (m->arrived != whole)
        refuse("warp-incomplete", at,
               "%s needs all 32 lanes of the warp, but only %d of them take part", name,
               __builtin_popcount(m->arrived));
    return m->leaving == 32;
}
template <class T>
const T& of_lane(const Meeting* m, int lane) {
    return *reinterpret_cast<const T*>(m->value[lane]);
}
u16& number(const Meeting* m, int matrix, int row, int column) {
    return reinterpret_cast<u16*>(of_lane<Rows>(m, matrix * 8 + row).row)[column];
}
u16& half(const Meeting* m, int lane, int matrix, int which) {
    return reinterpret_cast<u16*>(&of_lane<Rows>(m, lane).registers[matrix])[which];
}
// Matrices of 8 x 8 numbers of 2 bytes: lane i names row i % 8 of matrix i / 8, and holds two
// neighbours of row lane / 4, or of a column if the matrix is turned.
void move(u64 address, u32* registers, int count, bool turned, bool loads, Site at) {
    const char* name = loads ? "ldmatrix" : "stmatrix";
    Rows mine = {nullptr, registers};
    if (int(lane()) < count * 8) {
        mine.row = shared_pointer(address, at);
        if (size_t(mine.row) % 16)
            refuse("misaligned", at, "%s: a row lies at a multiple of 16 bytes, this one does not",
                   name);
        if (checking && loads)
            check_access(mine.row, 16, false, at);
    }
    Meeting* m;
    if (meet_warp(mine, m, name, at))
        for (int i = 0; i < 32; ++i)
            for (int k = 0; k < count * 2; ++k) {
                int row = i / 4, column = i % 4 * 2 + k % 2;
                u16& there = turned ? number(m, k / 2, column, row) : number(m, k / 2, row, column);
                if (loads)
                    half(m, i, k / 2, k % 2) = there;
                else
                    there = half(m, i, k / 2, k % 2);
            }
    if (checking && !loads && mine.row)
        check_access(mine.row, 16, true, at);
    part(m);
}

// ---- mma: element e of register i of the lane in group g with place t of it
struct Pieces {
    char* d;
    const char *a, *b, *c;
    u32 places;
};
struct Where {
    int row, column;
};
int per_register(Number n) {
    return n == Number::f64 ? 1 : 4 / bytes_of(n);
}
// a: (row, k); b: (k, column), as Where{k, column}
Where of_a(const MmaShape& s, int lane, int i, int e) {
    int each = per_register(s.a), group = lane / 4, place = lane % 4;
    if (s.m == 8)
        return {group, i * 4 * each + place * each + e};
    return {group + i % 2 * 8, i / 2 * 4 * each + place * each + e};
}
Where of_b(const MmaShape& s, int lane, int i, int e) {
    int each = per_register(s.b);
    return {i * 4 * each + lane % 4 * each + e, lane / 4};
}
Where of_c(int lane, int i) {
    return {lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2};
}

// The stored number j of a row of a sparse matrix stands in column ... of four: 2 bits each.
int sparse_column(const Meeting* m, int row, int j, u32 selector) {
    int lane = row % 8 * 4 + int(selector) * 2 + j / 8;
    u32 bits = of_lane<Pieces>(m, lane).places >> (row / 8 * 16 + j % 8 * 2);
    return j / 2 * 4 + int(bits & 3);
}

template <class Sum>
void multiply(const MmaShape& s, const Meeting* m, u32 selector) {
    Sum a[16 * 64] = {}, b[64 * 8], d[16 * 8];
    int stored = s.sparse ? s.k / 2 : s.k;
    int registers_a = s.m * stored / 32 / per_register(s.a);
    int registers_b = s.k * 8 / 32 / per_register(s.b);
    int sums = s.m * 8 / 32;
    for (int lane = 0; lane < 32; ++lane) {
        const Pieces& p = of_lane<Pieces>(m, lane);
        for (int i = 0; i < registers_a; ++i)
            for (int e = 0; e < per_register(s.a); ++e) {
                Where w = of_a(s, lane, i, e);
                int k = s.sparse ? sparse_column(m, w.row, w.column, selector) : w.column;
                a[w.row * s.k + k] = number_at<Sum>(p.a, i * per_register(s.a) + e, s.a);
            }
        for (int i = 0; i < registers_b; ++i)
            for (int e = 0; e < per_register(s.b); ++e) {
                Where w = of_b(s, lane, i, e);
                b[w.row * 8 + w.column] = number_at<Sum>(p.b, i * per_register(s.b) + e, s.b);
            }
        for (int i = 0; i < sums; ++i) {
            Where w = of_c(lane, i);
            d[w.row * 8 + w.column] = number_at<Sum>(p.c, i, s.f16_sum ? Number::f16 : s.sum);
        }
    }
    for (int i = 0; i < s.m; ++i)
        for (int j = 0; j < 8; ++j) {
            Sum sum = 0;
            for (int k = 0; k < s.k; ++k)
                sum += a[i * s.k + k] * b[k * 8 + j];
            d[i * 8 + j] = added(d[i * 8 + j], sum, s.saturate);
        }
    for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < sums; ++i) {
            Where w = of_c(lane, i);
            put_number(of_lane<Pieces>(m, lane).d, i, s.f16_sum ? Number::f16 : s.sum,
                       d[w.row * 8 + w.column]);
        }
}
}  // namespace

void load_matrices(u64 address, u32* registers, int count, bool turned, Site at) {
    move(address, registers, count, turned, true, at);
}
void store_matrices(u64 address, const u32* registers, int count, bool turned, Site at) {
    move(address, const_cast<u32*>(registers), count, turned, false, at);
}
void mma(const MmaShape& shape, void* d, const void* a, const void* b, const void* c, u32 places,
         u32 selector, Site at) {
    Pieces mine = {static_cast<char*>(d), static_cast<const char*>(a), static_cast<const char*>(b),
                   static_cast<const char*>(c), places};
    Meeting* m;
    if (meet_warp(mine, m, "mma.sync", at)) {
        if (shape.sum == Number::s32)
            multiply<int>(shape, m, selector);
        else if (shape.sum == Number::f64)
            multiply<double>(shape, m, selector);
        else
            multiply<float>(shape, m, selector);
    }
    part(m);
}
}  // namespace ptx
}  // namespace cuda_cpu
