// flags: -gencode=arch=compute_90a,code=sm_90a
// Asynchronous copies without tensor maps: cp.async, bulk copies and their barriers, clusters.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <cstdio>
__device__ unsigned address(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}
__device__ int wrong[10];
__device__ void check(int which, bool right) {
    if (!right)
        atomicAdd(&wrong[which], 1);
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
__device__ void arrive(unsigned long long* b) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(b)) : "memory");
}
__device__ void wait(unsigned long long* b, int parity) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n}" ::"r"(address(b)),
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
__device__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Two groups under way; what lies outside of the array becomes zero.
__global__ void groups(const float* in, int n) {
    __shared__ __align__(16) float box[2][128];
    int first = threadIdx.x * 4;
    unsigned long long once;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(once));
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(
                     address(&box[0][first])),
                 "l"(in + first), "l"(once)
                 : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    int at = 128 + first;
    int bytes = at < n ? 16 : 0;
    asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2, %3;" ::"r"(
                     address(&box[1][first])),
                 "l"(at < n ? in + at : in), "r"(bytes), "l"(once)
                 : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    for (int i = 0; i < 4; ++i)
        check(0, box[0][(first + i) ^ 64] == ((first + i) ^ 64));
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int i = 0; i < 4; ++i) {
        int at = (first + i) ^ 64;
        check(0, box[1][at] == (128 + at < n ? 128 + at : 0));
    }
}

// A ring of two stages: one thread fills, a warp empties.
__global__ void ring(const float* in, int steps) {
    __shared__ __align__(128) float box[2][64];
    __shared__ unsigned long long full[2], empty[2];
    if (threadIdx.x == 0)
        for (int i = 0; i < 2; ++i) {
            init(&full[i], 1);
            init(&empty[i], 32);
        }
    __syncthreads();
    if (threadIdx.x == 32)
        for (int i = 0; i < steps; ++i) {
            wait(&empty[i % 2], i / 2 % 2 ^ 1);
            expect(&full[i % 2], 256);
            load(box[i % 2], in + i * 64, 128, &full[i % 2]);
            load(box[i % 2] + 32, in + i * 64 + 32, 128, &full[i % 2]);
        }
    if (threadIdx.x < 32)
        for (int i = 0; i < steps; ++i) {
            wait(&full[i % 2], i / 2 % 2);
            for (int j = threadIdx.x; j < 64; j += 32)
                check(1, box[i % 2][j] == i * 64 + j);
            arrive(&empty[i % 2]);
        }
}

// A state instead of a parity; test_wait does not wait.
__global__ void states() {
    __shared__ unsigned long long met;
    if (threadIdx.x == 0)
        init(&met, 64);
    __syncthreads();
    for (int i = 0; i < 3; ++i) {
        unsigned long long state;
        unsigned over = 0;
        asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];"
                     : "=l"(state)
                     : "r"(address(&met))
                     : "memory");
        while (!over)
            asm volatile(
                "{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, "
                "0, p; }"
                : "=r"(over)
                : "r"(address(&met)), "l"(state)
                : "memory");
    }
    check(2, true);
}

__global__ void stores(float* out, float* sums) {
    __shared__ __align__(128) float box[64];
    box[threadIdx.x] = threadIdx.x;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                         out + blockIdx.x * 64),
                     "r"(address(box)), "r"(256)
                     : "memory");
        asm volatile(
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(
                sums),
            "r"(address(box)), "r"(256)
            : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

// A ring of four blocks: each sends its number on, and reads what its neighbour keeps.
__global__ void __cluster_dims__(4) neighbours() {
    __shared__ __align__(16) unsigned kept[4];
    __shared__ __align__(16) unsigned sent[4];
    __shared__ unsigned long long full;
    unsigned rank, blocks, x;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(x));
    check(3, rank == blockIdx.x % 4 && blocks == 4 && x == blockIdx.x / 4);
    if (threadIdx.x == 0) {
        init(&full, 1);
        expect(&full, 16);
    }
    if (threadIdx.x < 4)
        kept[threadIdx.x] = blockIdx.x * 10 + threadIdx.x;
    cluster_sync();
    unsigned next = (rank + 1) % 4;
    unsigned there, barrier, got;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address(&kept[1])), "r"(next));
    asm volatile("ld.shared::cluster.u32 %0, [%1 + 4];" : "=r"(got) : "r"(there) : "memory");
    check(3, got == (blockIdx.x / 4 * 4 + next) * 10 + 2);
    if (threadIdx.x == 0) {
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address(sent)), "r"(next));
        asm("mapa.shared::cluster.u32 %0, %1, %2;"
            : "=r"(barrier)
            : "r"(address(&full)), "r"(next));
        asm volatile(
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %1, %1, %1}, "
            "[%2];" ::"r"(there),
            "r"(blockIdx.x), "r"(barrier)
            : "memory");
    }
    wait(&full, 0);
    check(4, sent[threadIdx.x % 4] == blockIdx.x / 4 * 4 + (rank + 3) % 4);
    cluster_sync();
}

// One copy for both blocks of a cluster.
__global__ void __cluster_dims__(2) multicast(const float* in) {
    __shared__ __align__(128) float box[32];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        init(&full, 1);
        expect(&full, 128);
    }
    cluster_sync();
    unsigned short both = 3;
    if (threadIdx.x == 0 && blockIdx.x % 2 == 1)
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
            "[%0], [%1], 128, [%2], %3;" ::"r"(address(box)),
            "l"(in), "r"(address(&full)), "h"(both)
            : "memory");
    wait(&full, 0);
    check(5, box[threadIdx.x] == threadIdx.x);
    cluster_sync();
}

// Two groups of two warps meet by themselves; one group only arrives at the last barrier.
__global__ void named() {
    __shared__ int turns[2];
    int group = threadIdx.x / 64;
    if (threadIdx.x % 64 == 0)
        turns[group] = 0;
    for (int i = 0; i < 5; ++i) {
        asm volatile("bar.sync %0, 64;" ::"r"(group + 1) : "memory");
        if (threadIdx.x % 64 == 0)
            turns[group] += i;
        asm volatile("barrier.sync %0, 64;" ::"r"(group + 1) : "memory");
        check(6, turns[group] == i * (i + 1) / 2);
    }
    if (group == 0) {
        asm volatile("bar.arrive 3, 128;" ::: "memory");
    } else {
        asm volatile("bar.sync 3, 128;" ::: "memory");
        check(6, turns[0] == 10);
    }
}

// The same through CUDA's own functions.
__global__ void pipeline(const float* in) {
    __shared__ __align__(16) float box[2][128];
    for (int i = 0; i < 2; ++i) {
        size_t zeros = i && threadIdx.x == 31 ? 8 : 0;
        __pipeline_memcpy_async(&box[i][threadIdx.x * 4], in + i * 128 + threadIdx.x * 4, 16,
                                zeros);
        __pipeline_commit();
    }
    __pipeline_wait_prior(1);
    __syncthreads();
    check(8, box[0][127 - threadIdx.x] == 127 - threadIdx.x);
    __pipeline_wait_prior(0);
    __syncthreads();
    int at = 127 - threadIdx.x;
    check(8, box[1][at] == (at < 126 ? 128 + at : 0));
}
__global__ void __cluster_dims__(2, 2) square() {
    __shared__ unsigned mine;
    auto cluster = cooperative_groups::this_cluster();
    dim3 at = cluster.block_index();
    if (threadIdx.x == 0)
        mine = blockIdx.y * gridDim.x + blockIdx.x;
    cluster.sync();
    check(9, cluster.num_blocks() == 4 && cluster.block_rank() == at.y * 2 + at.x);
    check(9, at.x == blockIdx.x % 2 && at.y == blockIdx.y % 2);
    unsigned sum = 0;
    for (int rank = 0; rank < 4; ++rank)
        sum += *cluster.map_shared_rank(&mine, rank);
    unsigned first = blockIdx.y / 2 * 2 * gridDim.x + blockIdx.x / 2 * 2;
    check(9, sum == first * 4 + 2 + gridDim.x * 2);
    cluster.sync();
}

int main() {
    float *in, *out;
    cudaMallocManaged(&in, 1024 * 4);
    cudaMallocManaged(&out, 256 * 4);
    for (int i = 0; i < 1024; ++i)
        in[i] = i;
    for (int i = 0; i < 256; ++i)
        out[i] = 0;
    groups<<<1, 32>>>(in, 200);
    ring<<<1, 64>>>(in, 9);
    states<<<1, 64>>>();
    stores<<<2, 64>>>(out, out + 128);
    neighbours<<<8, 32>>>();
    multicast<<<4, 32>>>(in);
    named<<<1, 128>>>();
    pipeline<<<1, 32>>>(in);
    square<<<dim3(6, 4), 32>>>();
    int host[10];
    if (cudaMemcpyFromSymbol(host, wrong, sizeof host))
        return 1;
    for (int i = 0; i < 128; ++i)
        host[7] += out[i] != i % 64 || (i < 64 && out[128 + i] != 2 * i);
    const char* names[] = {"groups",    "ring",  "states", "clusters", "sent",
                           "multicast", "named", "stores", "pipeline", "squares"};
    for (int i = 0; i < 10; ++i)
        printf("%s: %d wrong\n", names[i], host[i]);
    cudaFree(in);
    cudaFree(out);
}
