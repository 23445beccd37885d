// Planted mistakes, one a kernel; the program takes its name.
// expect bar.sync; line 37; case named_too_few
// expect expect different numbers; line 44 or 46; case named_numbers_differ
// expect which has ended; line 59; case cluster_block_ends
// expect none of rank 2; line 74; case cluster_rank
// expect must be a multiple of the cluster; line 171; case cluster_grid
// expect multiple of 16 bytes; line 106; case ldmatrix_row
// expect needs all 32 lanes; line 118; case mma_half_a_warp
// expect announced bytes that no copy brings; line 25; case store_async_bytes
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
__device__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
}
// The barrier expects 128 threads, and 96 come.
__global__ void named_too_few(float* out, const float* in) {
    if (threadIdx.x < 96)
        asm volatile("bar.sync 1, 128;" ::: "memory");
    out[threadIdx.x] = in[threadIdx.x];
}

// Two groups of threads use the same barrier, and expect different numbers of threads.
__global__ void named_numbers_differ(float* out, const float* in) {
    if (threadIdx.x < 64)
        asm volatile("bar.sync 1, 96;" ::: "memory");
    else
        asm volatile("bar.sync 1, 64;" ::: "memory");
    out[threadIdx.x] = in[threadIdx.x];
}

// A block ends while the other still reads its shared memory.
__global__ __cluster_dims__(2) void cluster_block_ends(float* out, const float* in) {
    __shared__ float value;
    if (threadIdx.x == 0)
        value = in[blockIdx.x];
    cluster_sync();
    if (blockIdx.x % 2 == 1)
        return;
    float there;
    asm volatile(
        "{ .reg .b32 a; mapa.shared::cluster.u32 a, %1, %2; ld.shared::cluster.f32 %0, [a]; }"
        : "=f"(there)
        : "r"(address(&value)), "r"(1)
        : "memory");
    out[blockIdx.x * 32 + threadIdx.x] = there;
}

// A cluster of two blocks has the ranks 0 and 1.
__global__ __cluster_dims__(2) void cluster_rank(float* out, const float* in) {
    __shared__ float value;
    if (threadIdx.x == 0)
        value = in[blockIdx.x];
    cluster_sync();
    float there;
    asm volatile(
        "{ .reg .b32 a; mapa.shared::cluster.u32 a, %1, %2; ld.shared::cluster.f32 %0, [a]; }"
        : "=f"(there)
        : "r"(address(&value)), "r"(blockIdx.x % 2 + 1)
        : "memory");
    out[blockIdx.x * 32 + threadIdx.x] = there;
    cluster_sync();
}

// Three blocks cannot be launched in clusters of two.
__global__ __cluster_dims__(2) void cluster_grid(float* out, const float* in) {
    __shared__ float value;
    if (threadIdx.x == 0)
        value = in[blockIdx.x];
    cluster_sync();
    float there;
    asm volatile(
        "{ .reg .b32 a; mapa.shared::cluster.u32 a, %1, %2; ld.shared::cluster.f32 %0, [a]; }"
        : "=f"(there)
        : "r"(address(&value)), "r"(1 - blockIdx.x % 2)
        : "memory");
    out[blockIdx.x * 32 + threadIdx.x] = there;
    cluster_sync();
}

// Rows of 36 bytes: ldmatrix wants each at a multiple of 16.
__global__ void ldmatrix_row(float* out, const float* in) {
    __shared__ __align__(16) unsigned short rows[8][18];
    for (int i = threadIdx.x; i < 8 * 18; i += 32)
        rows[i / 18][i % 18] = 0;
    __syncwarp();
    unsigned r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(r)
                 : "r"(address(rows[threadIdx.x % 8])));
    out[threadIdx.x] = r;
}

// Half of the warp has left when the other half multiplies.
__global__ void mma_half_a_warp(float* out, const float* in) {
    if (threadIdx.x >= 16)
        return;
    float d[4] = {};
    unsigned a[4] = {}, b[2] = {};
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    out[threadIdx.x] = d[0] + in[0];
}

// st.async brings 4 bytes, and 8 are announced.
__global__ __cluster_dims__(2) void store_async_bytes(float* out, const float* in) {
    __shared__ float value;
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        init(&full, 1);
        expect(&full, 8);
    }
    cluster_sync();
    if (threadIdx.x == 0) {
        unsigned there, barrier;
        unsigned other = 1 - blockIdx.x % 2;
        asm("mapa.shared::cluster.u32 %0, %1, %2;"
            : "=r"(there)
            : "r"(address(&value)), "r"(other));
        asm("mapa.shared::cluster.u32 %0, %1, %2;"
            : "=r"(barrier)
            : "r"(address(&full)), "r"(other));
        asm volatile(
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(
                there),
            "f"(in[blockIdx.x]), "r"(barrier)
            : "memory");
    }
    wait(&full, 0);
    out[blockIdx.x * 32 + threadIdx.x] = value;
    cluster_sync();
}

int main(int, char** arguments) {
    const char* name = arguments[1];
    int count = 128;
    float *in, *out;
    cudaMalloc(&in, count * sizeof(float));
    cudaMalloc(&out, count * sizeof(float));
    cudaMemset(in, 0, count * sizeof(float));
    if (!strcmp(name, "named_too_few"))
        named_too_few<<<1, 128>>>(out, in);
    if (!strcmp(name, "named_numbers_differ"))
        named_numbers_differ<<<1, 128>>>(out, in);
    if (!strcmp(name, "cluster_block_ends"))
        cluster_block_ends<<<2, 32>>>(out, in);
    if (!strcmp(name, "cluster_rank"))
        cluster_rank<<<2, 32>>>(out, in);
    if (!strcmp(name, "cluster_grid"))
        cluster_grid<<<3, 32>>>(out, in);
    if (!strcmp(name, "ldmatrix_row"))
        ldmatrix_row<<<1, 32>>>(out, in);
    if (!strcmp(name, "mma_half_a_warp"))
        mma_half_a_warp<<<1, 32>>>(out, in);
    if (!strcmp(name, "store_async_bytes"))
        store_async_bytes<<<2, 32>>>(out, in);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(in);
    cudaFree(out);
}
