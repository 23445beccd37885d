// Planted mistakes, one a kernel; the program takes its name.
// expect whose group has not been waited for; line 80; case wgmma_no_wait
// expect without wgmma.fence; line 58; case wgmma_no_fence
// expect nobody has waited for this wgmma; line 58; case wgmma_no_commit
// expect wgmma.wait_group; line 54; case wgmma_half_a_group
// expect different descriptors; line 58; case wgmma_descriptors_differ
// expect may still be reading; line 164; case wgmma_tile_overwritten
// expect fence.proxy.async; line 58; case wgmma_no_proxy_fence
// expect has not filled yet; line 58; case wgmma_copy_not_awaited
// expect may still be reading; line 38; case wgmma_copy_too_soon
// expect with a swizzle of 128; line 58; case wgmma_swizzle
// expect this is no tensor map; line 277; case tensor_map_not_made
// expect multiple of 16 bytes; line 302; case box_begins_between
// expect begins before the tensor; line 320; case stored_before_the_tensor
#include <cuda.h>
#include <cstdio>
#include <cstring>
__device__ unsigned address(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}
__device__ void init(unsigned long long* b, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(b)), "r"(arrivals));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void expect(unsigned long long* b, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(b)),
                 "r"(bytes)
                 : "memory");
}
__device__ void wait(unsigned long long* b, int parity) {
    asm volatile(
        "{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra "
        "again; }" ::"r"(address(b)),
        "r"(parity)
        : "memory");
}
__device__ void load(void* to, const void* from, int bytes, unsigned long long* b) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(address(to)),
        "l"(from), "r"(bytes), "r"(address(b))
        : "memory");
}
__device__ void show() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ void fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ void close_group() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
__device__ void wait_for_groups() {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
// d (64 x 8) += a (64 x 16) b (16 x 8); the rows of both lie along k, in units of 8 x 16 bytes.
__device__ void multiply(float (&d)[4], unsigned long long a, unsigned long long b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, "
        "0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "l"(a), "l"(b));
}
__device__ unsigned long long tile(const void* p) {
    return (address(p) & 0x3ffff) / 16 | 8ull << 16 | 16ull << 32;
}
// The sums are read before the group is waited for.
__global__ void wgmma_no_wait(float* out, const float* in,
                              const __grid_constant__ CUtensorMap map) {
    __shared__ __align__(1024) unsigned short a[64 * 16], b[8 * 16];
    for (int i = threadIdx.x; i < 64 * 16; i += 128)
        a[i] = b[i % 128] = 0;
    show();
    __syncthreads();
    float d[4] = {};
    fence();
    multiply(d, tile(a), tile(b));
    close_group();
    for (int i = 0; i < 4; ++i)
        out[threadIdx.x * 4 + i] = d[i];
}

// The first wgmma needs a fence before it: the registers may not be ready.
__global__ void wgmma_no_fence(float* out, const float* in,
                               const __grid_constant__ CUtensorMap map) {
    __shared__ __align__(1024) unsigned short a[64 * 16], b[8 * 16];
    for (int i = threadIdx.x; i < 64 * 16; i += 128)
        a[i] = b[i % 128] = 0;
    show();
    __syncthreads();
    float d[4] = {};
    multiply(d, tile(a), tile(b));
    close_group();
    wait_for_groups();
    for (int i = 0; i < 4; ++i)
        out[threadIdx.x * 4 + i] = d[i];
}

// What is in no group is not waited for.
__global__ void wgmma_no_commit(float* out, const float* in,
                                const __grid_constant__ CUtensorMap map) {
    __shared__ __align__(1024) unsigned short a[64 * 16], b[8 * 16];
    for (int i = threadIdx.x; i < 64 * 16; i += 128)
        a[i] = b[i % 128] = 0;
    show();
    __syncthreads();
    float d[4] = {};
    fence();
    multiply(d, tile(a), tile(b));
    wait_for_groups();
    for (int i = 0; i < 4; ++i)
        out[threadIdx.x * 4 + i] = d[i];
}

// All 128 threads of a warp group take part in wgmma.
__global__ void wgmma_half_a_group(float* out, const float* in,
                                   const __grid_constant__ CUtensorMap map) {
    __shared__ __align__(1024) unsigned short a[64 * 16], b[8 * 16];
    for (int i = threadIdx.x; i < 64 * 16; i += 128)
        a[i] = b[i % 128] = 0;
    show();
    __syncthreads();
    float d[4] = {};
    if (threadIdx.x < 64) {
        fence();
        multiply(d, tile(a), tile(b));
        close_group();
        wait_for_groups();
    }
    asm volatile("bar.sync 1, 128;" ::: "memory");
    for (int i = 0; i < 4; ++i)
        out[threadIdx.x * 4 + i] = d[i];
}

// All threads of a warp group name the same tiles.
__global__ void wgmma_descriptors_differ(float* out, const float* in,
                                         const __grid_constant__ CUtensorMap map) {
    __shared__ __align__(1024) unsigned short a[64 * 16], b[8 * 16];
    for (int i = threadIdx.x; i < 64 * 16; i += 128)
        a[i] = b[i % 128] = 0;
    show();
    __syncthreads();
    float d[4] = {};
    fence();
    multiply(d, tile(a + threadIdx.x / 32 * 128), tile(b));
    close_group();
    wait_for_groups();
    for (int i = 0; i < 4; ++i)
        out[threadIdx.x * 4 + i] = d[i];
}

// The tile is overwritten while wgmma may still be reading it.
__global__ void wgmma_tile_overwritten(float* out, const float* in,
                                       const __grid_constant__ CUtensorMap map) {
    __shared__ __align__(1024) unsigned short a[64 * 16], b[8 * 16];
    for (int i = threadIdx.x; i < 64 * 16; i += 128)
        a[i] = b[i % 128] = 0;
    show();
    __syncthreads();
    float d[4] = {};
    fence();
    multiply(d, tile(a), tile(b));
    close_group();
    a[threadIdx.x] = 1;
    wait_for_groups();
    for (int i = 0; i < 4; ++i)
        out[threadIdx.x * 4 + i] = d[i];
}

// wgmma may not see what threads have written without a fence between the proxies.
__global__ void wgmma_no_proxy_fence(float* out, const float* in,
                                     const __grid_constant__ CUtensorMap map) {
    __shared__ __align__(1024) unsigned short a[64 * 16], b[8 * 16];
    for (int i = threadIdx.x; i < 64 * 16; i += 128)
        a[i] = b[i % 128] = 0;
    __syncthreads();
    float d[4] = {};
    fence();
    multiply(d, tile(a), tile(b));
    close_group();
    wait_for_groups();
    for (int i = 0; i < 4; ++i)
        out[threadIdx.x * 4 + i] = d[i];
}

// The product is queued before the tile has come.
__global__ void wgmma_copy_not_awaited(float* out, const float* in,
                                       const __grid_constant__ CUtensorMap map) {
    __shared__ __align__(1024) unsigned short a[64 * 16], b[8 * 16];
    for (int i = threadIdx.x; i < 64 * 16; i += 128)
        a[i] = b[i % 128] = 0;
    show();
    __syncthreads();
    float d[4] = {};
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        init(&full, 1);
        expect(&full, 256);
        load(b, in, 256, &full);
    }
    __syncthreads();
    fence();
    multiply(d, tile(a), tile(b));
    close_group();
    wait_for_groups();
    for (int i = 0; i < 4; ++i)
        out[threadIdx.x * 4 + i] = d[i];
}

// The next tile is copied over one that wgmma may still be reading.
__global__ void wgmma_copy_too_soon(float* out, const float* in,
                                    const __grid_constant__ CUtensorMap map) {
    __shared__ __align__(1024) unsigned short a[64 * 16], b[8 * 16];
    for (int i = threadIdx.x; i < 64 * 16; i += 128)
        a[i] = b[i % 128] = 0;
    show();
    __syncthreads();
    float d[4] = {};
    __shared__ unsigned long long full;
    if (threadIdx.x == 0)
        init(&full, 1);
    __syncthreads();
    fence();
    multiply(d, tile(a), tile(b));
    close_group();
    if (threadIdx.x == 0) {
        expect(&full, 256);
        load(b, in, 256, &full);
    }
    wait_for_groups();
    wait(&full, 0);
    for (int i = 0; i < 4; ++i)
        out[threadIdx.x * 4 + i] = d[i];
}

// The copy swizzles the tile, and the descriptor says that it lies as it is.
__global__ void wgmma_swizzle(float* out, const float* in,
                              const __grid_constant__ CUtensorMap map) {
    __shared__ __align__(1024) unsigned short a[64][64];
    __shared__ __align__(1024) unsigned short b[8 * 16];
    __shared__ unsigned long long full;
    for (int i = threadIdx.x; i < 128; i += 128)
        b[i] = 0;
    show();
    if (threadIdx.x == 0) {
        init(&full, 1);
        expect(&full, sizeof a);
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
            "[%1, {%2, %3}], [%4];" ::"r"(address(a)),
            "l"(&map), "r"(0), "r"(0), "r"(address(&full))
            : "memory");
    }
    __syncthreads();
    wait(&full, 0);
    float d[4] = {};
    fence();
    multiply(d, tile(a), tile(b));
    close_group();
    wait_for_groups();
    for (int i = 0; i < 4; ++i)
        out[threadIdx.x * 4 + i] = d[i];
}

// The tensor map is never filled in.
__global__ void tensor_map_not_made(float* out, const float* in,
                                    const __grid_constant__ CUtensorMap map) {
    __shared__ __align__(1024) unsigned short a[64][64];
    __shared__ __align__(1024) unsigned short b[8 * 16];
    __shared__ unsigned long long full;
    for (int i = threadIdx.x; i < 128; i += 128)
        b[i] = 0;
    show();
    if (threadIdx.x == 0) {
        init(&full, 1);
        expect(&full, sizeof a);
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
            "[%1, {%2, %3}], [%4];" ::"r"(address(a)),
            "l"(&map), "r"(0), "r"(0), "r"(address(&full))
            : "memory");
    }
    __syncthreads();
    wait(&full, 0);
    float d[4] = {};
    fence();
    multiply(d, tile(a), tile(b));
    close_group();
    wait_for_groups();
    for (int i = 0; i < 4; ++i)
        out[threadIdx.x * 4 + i] = d[i];
}

// The box begins 6 bytes into a row: a tensor copy's innermost coordinate counts in 16 bytes.
__global__ void box_begins_between(float* out, const float* in,
                                   const __grid_constant__ CUtensorMap map) {
    __shared__ __align__(1024) unsigned short a[64 * 64];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        init(&full, 1);
        expect(&full, sizeof a);
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
            "[%1, {%2, %3}], [%4];" ::"r"(address(a)),
            "l"(&map), "r"(3), "r"(0), "r"(address(&full))
            : "memory");
    }
    __syncthreads();
    wait(&full, 0);
    out[threadIdx.x] = a[threadIdx.x];
}

// A load may begin before its tensor, a store may not.
__global__ void stored_before_the_tensor(const __grid_constant__ CUtensorMap map) {
    __shared__ __align__(1024) unsigned short a[64 * 64];
    for (int i = threadIdx.x; i < 64 * 64; i += 128)
        a[i] = i;
    show();
    if (threadIdx.x == 0) {
        asm volatile(
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
                &map),
            "r"(0), "r"(-2), "r"(address(a))
            : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

int main(int, char** arguments) {
    const char* name = arguments[1];
    int count = 2048;
    float *in, *out;
    cudaMalloc(&in, count * sizeof(float));
    cudaMalloc(&out, count * sizeof(float));
    cudaMemset(in, 0, count * sizeof(float));
    CUtensorMap map, empty = {};
    cuuint64_t sizes[] = {64, 64}, strides[] = {128};
    cuuint32_t box[] = {64, 64}, steps[] = {1, 1};
    cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, in, sizes, strides, box,
                           steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                           CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (!strcmp(name, "wgmma_no_wait"))
        wgmma_no_wait<<<1, 128>>>(out, in, map);
    if (!strcmp(name, "wgmma_no_fence"))
        wgmma_no_fence<<<1, 128>>>(out, in, map);
    if (!strcmp(name, "wgmma_no_commit"))
        wgmma_no_commit<<<1, 128>>>(out, in, map);
    if (!strcmp(name, "wgmma_half_a_group"))
        wgmma_half_a_group<<<1, 128>>>(out, in, map);
    if (!strcmp(name, "wgmma_descriptors_differ"))
        wgmma_descriptors_differ<<<1, 128>>>(out, in, map);
    if (!strcmp(name, "wgmma_tile_overwritten"))
        wgmma_tile_overwritten<<<1, 128>>>(out, in, map);
    if (!strcmp(name, "wgmma_no_proxy_fence"))
        wgmma_no_proxy_fence<<<1, 128>>>(out, in, map);
    if (!strcmp(name, "wgmma_copy_not_awaited"))
        wgmma_copy_not_awaited<<<1, 128>>>(out, in, map);
    if (!strcmp(name, "wgmma_copy_too_soon"))
        wgmma_copy_too_soon<<<1, 128>>>(out, in, map);
    if (!strcmp(name, "wgmma_swizzle"))
        wgmma_swizzle<<<1, 128>>>(out, in, map);
    if (!strcmp(name, "tensor_map_not_made"))
        tensor_map_not_made<<<1, 128>>>(out, in, empty);
    if (!strcmp(name, "box_begins_between"))
        box_begins_between<<<1, 128>>>(out, in, map);
    if (!strcmp(name, "stored_before_the_tensor"))
        stored_before_the_tensor<<<1, 128>>>(map);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(in);
    cudaFree(out);
}
