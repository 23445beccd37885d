// What the runtime does for instructions of inline PTX that are more than arithmetic. Addresses in
// shared memory are numbers as on a GPU; in a cluster their upper byte says which block they belong
// to.
#pragma once
#include "values.h"

namespace cuda_cpu {
namespace ptx {
// ---- shared memory
char* shared_pointer(u64 address, Site at);
u32 shared_address(const void* p, Site at);
u32 map_address(u64 address, u32 rank, Site at);

// ---- mbarrier
void mbarrier_init(u64 address, u32 arrivals, Site at);
void mbarrier_inval(u64 address, Site at);
u64 mbarrier_arrive(u64 address, u32 count, u32 bytes, bool drop, Site at);
void mbarrier_expect(u64 address, u32 bytes, Site at);
void mbarrier_complete(u64 address, u32 bytes, Site at);
bool mbarrier_wait(u64 address, u64 which, bool is_parity, bool may_wait, Site at);
u32 mbarrier_pending(u64 state);

// ---- copies
void cp_async(u64 to, u64 from, u32 bytes, u32 given, Site at);
void cp_async_commit();
void cp_async_wait(u32 pending);
void cp_async_arrive(u64 barrier, bool no_increase, Site at);
void bulk_load(u64 to, u64 from, u32 bytes, u64 barrier, u32 blocks, bool many, Site at);
void bulk_between(u64 to, u64 from, u32 bytes, u64 barrier, Site at);
enum class Reduce { none, add, min, max, inc, dec, bit_and, bit_or, bit_xor };
enum class ElementType {
    u8,
    u16,
    u32,
    s32,
    u64,
    s64,
    f16,
    f32,
    f64,
    bf16,
    f32_ftz,
    tf32,
    tf32_ftz
};
void bulk_store(u64 to, u64 from, u32 bytes, Reduce how, ElementType element, Site at);
struct Place {
    int c[5];
    u16 offset[3];
};
void tensor_load(u64 to, u64 map, Place place, int rank, bool pixels, u64 barrier, u32 blocks,
                 bool many, Site at);
void tensor_store(u64 map, Place place, int rank, u64 from, Reduce how, bool pixels, Site at);
void bulk_commit();
void bulk_wait(u32 pending, bool read);
void store_async(u64 to, u64 barrier, const void* value, u32 bytes, Site at);
void fence_proxy_async();

// ---- meetings
void named_barrier(u32 number, u32 threads, bool waits, Site at);
void tile_barrier(u32 tile, u32 threads, Site at);  // of a tile of several warps
void cluster_arrive(Site at);
void cluster_wait(Site at);
u32 cluster_special(int which);
u32 elect(u32 mask, bool* leader, Site at);

// ---- matrices of a warp
void load_matrices(u64 address, u32* registers, int count, bool turned, Site at);
void store_matrices(u64 address, const u32* registers, int count, bool turned, Site at);
enum class Number { f16, bf16, tf32, f32, f64, s8, u8, e4m3, e5m2, s32 };
struct MmaShape {
    int m, n, k;
    Number a, b, sum;
    bool f16_sum, saturate, sparse;
};
void mma(const MmaShape& shape, void* d, const void* a, const void* b, const void* c, u32 places,
         u32 selector, Site at);

// ---- wgmma
struct WgmmaShape {
    int n, k;
    Number a, b;
    bool f16_sum, is_int, saturate, a_in_registers, a_turned, b_turned, minus_a, minus_b;
};
void wgmma(const WgmmaShape& shape, void* const* sums, const u32* a, u64 a_tile, u64 b_tile,
           bool add, Site at);
void wgmma_fence();
void wgmma_commit();
void wgmma_wait(u32 pending, Site at);
void keep_registers(u32 count, bool more, Site at);
}  // namespace ptx
}  // namespace cuda_cpu
