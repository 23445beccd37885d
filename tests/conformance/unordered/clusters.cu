// Planted mistakes between blocks of a cluster, one a kernel; the program takes its name.
// expect two threads use the same shared memory; line 32 or 33; case read_before_sync
// expect two threads use the same shared memory; line 44 or 46; case overwritten_before_read
// expect two threads use the same shared memory; line 56 or 58; case written_after_arrive
// expect two threads use the same shared memory; line 66 or 69; case block_barrier_is_not_enough
// expect two threads use the same shared memory; line 77 or 79; case atomic_and_plain
// expect no thread of the block has written; line 91; case neighbour_never_wrote
// expect two threads use the same shared memory; line 101 or 103; case halo_of_next_step
// expect outside of its variables; line 114; case past_the_neighbours_end
// right: right_exchange right_arrive_and_wait right_histogram right_two_steps right_remote_barrier
#include <cooperative_groups.h>
#include <cstdio>
#include <cstring>
namespace cg = cooperative_groups;
const int n = 64;
#define PAIR __global__ __cluster_dims__(2)

__device__ int other() {
    return cg::this_cluster().block_rank() ^ 1;
}

__device__ int id() {
    return blockIdx.x * n + threadIdx.x;
}

// Nothing says that the other block has stored before this one reads.
PAIR void read_before_sync(int* out) {
    __shared__ int mine[n];
    cg::cluster_group cluster = cg::this_cluster();
    int* theirs = cluster.map_shared_rank(mine, other());

    mine[threadIdx.x] = threadIdx.x;
    out[id()] = theirs[threadIdx.x];
    cluster.sync();
}

// The second value is stored while the other block may still read the first.
PAIR void overwritten_before_read(int* out) {
    __shared__ int mine[n];
    cg::cluster_group cluster = cg::this_cluster();
    int* theirs = cluster.map_shared_rank(mine, other());
    mine[threadIdx.x] = threadIdx.x;
    cluster.sync();
    out[id()] = theirs[threadIdx.x];

    mine[threadIdx.x] = 0;
    cluster.sync();
}

// It has arrived, and stores after that what the others go on to read.
PAIR void written_after_arrive(int* out) {
    __shared__ int mine[n];
    cg::cluster_group cluster = cg::this_cluster();
    int* theirs = cluster.map_shared_rank(mine, other());
    cluster.barrier_arrive();
    mine[threadIdx.x] = threadIdx.x;
    cluster.barrier_wait();
    out[id()] = theirs[threadIdx.x];
    cluster.sync();
}

// __syncthreads() is for the threads of one block.
PAIR void block_barrier_is_not_enough(int* out) {
    __shared__ int mine[n];
    cg::cluster_group cluster = cg::this_cluster();
    mine[threadIdx.x] = threadIdx.x;
    __syncthreads();
    int* theirs = cluster.map_shared_rank(mine, other());
    out[id()] = theirs[n - 1 - threadIdx.x];
    cluster.sync();
}

// One block counts with atomic operations, the other one looks without.
PAIR void atomic_and_plain(int* out) {
    __shared__ int total;
    if (threadIdx.x == 0)
        total = 0;
    cg::cluster_group cluster = cg::this_cluster();
    atomicAdd(cluster.map_shared_rank(&total, 0), 1);
    cluster.sync();
    out[id()] = total;
}

// Only the first block fills its part, and the first reads the second's.
PAIR void neighbour_never_wrote(int* out) {
    __shared__ int mine[n];
    cg::cluster_group cluster = cg::this_cluster();
    if (cluster.block_rank() == 0)
        mine[threadIdx.x] = 1;
    cluster.sync();
    out[id()] = *cluster.map_shared_rank(&mine[threadIdx.x], 1);
    cluster.sync();
}

// A stencil whose steps are parted by one barrier, where two are needed.
PAIR void halo_of_next_step(int* out) {
    __shared__ int mine[n];
    cg::cluster_group cluster = cg::this_cluster();
    int* theirs = cluster.map_shared_rank(mine, other());
    for (int step = 0; step < 3; ++step) {
        mine[threadIdx.x] = step;
        cluster.sync();
        out[id()] += theirs[n - 1 - threadIdx.x];
    }
    cluster.sync();
}

// The neighbour's array has as many elements as this one's.
PAIR void past_the_neighbours_end(int* out) {
    __shared__ int mine[n];
    cg::cluster_group cluster = cg::this_cluster();
    mine[threadIdx.x] = 1;
    cluster.sync();
    out[id()] = cluster.map_shared_rank(mine, other())[threadIdx.x + 1];
    cluster.sync();
}

PAIR void right_exchange(int* out) {
    __shared__ int mine[n];
    cg::cluster_group cluster = cg::this_cluster();
    mine[threadIdx.x] = threadIdx.x;
    cluster.sync();
    out[id()] = cluster.map_shared_rank(mine, other())[n - 1 - threadIdx.x];
    cluster.sync();
}
PAIR void right_arrive_and_wait(int* out) {
    __shared__ int mine[n];
    cg::cluster_group cluster = cg::this_cluster();
    cluster.map_shared_rank(mine, other())[threadIdx.x] = threadIdx.x;
    cluster.barrier_arrive();
    int own = out[id()];
    cluster.barrier_wait();
    out[id()] = own + mine[threadIdx.x];
}
PAIR void right_histogram(int* out) {
    __shared__ int bins[n];
    cg::cluster_group cluster = cg::this_cluster();
    bins[threadIdx.x] = 0;
    cluster.sync();
    for (int i = 0; i < 3; ++i)
        atomicAdd(cluster.map_shared_rank(bins, i % 2) + (threadIdx.x * 7 + i) % n, 1);
    cluster.sync();
    out[id()] = bins[threadIdx.x];
}
PAIR void right_two_steps(int* out) {
    __shared__ int mine[2][n];
    cg::cluster_group cluster = cg::this_cluster();
    int sum = 0;
    for (int step = 0; step < 6; ++step) {
        int* now = mine[step % 2];
        now[threadIdx.x] = step;
        cluster.sync();
        sum += cluster.map_shared_rank(now, other())[n - 1 - threadIdx.x];
    }
    out[id()] = sum;
    cluster.sync();
}
// The other block arrives at a barrier in this one's shared memory when its value is there.
PAIR void right_remote_barrier(int* out) {
    __shared__ int mine;
    __shared__ unsigned long long full;
    unsigned here = (unsigned)__cvta_generic_to_shared(&full);
    unsigned place = (unsigned)__cvta_generic_to_shared(&mine);
    if (threadIdx.x == 0)
        asm volatile(
            "mbarrier.init.shared::cta.b64 [%0], 1;"
            "fence.mbarrier_init.release.cluster;" ::"r"(here)
            : "memory");
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    if (threadIdx.x == 0)
        asm volatile(
            "{ .reg .b32 a; mapa.shared::cluster.u32 a, %0, %2; st.shared::cluster.u32 [a], 7;"
            "mapa.shared::cluster.u32 a, %1, %2;"
            "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [a]; }" ::"r"(place),
            "r"(here), "r"(other())
            : "memory");
    asm volatile(
        "{ .reg .pred p; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], "
        "0; @!p bra again; }" ::"r"(here)
        : "memory");
    out[id()] = mine;
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
}

#define CASES(f)                                                                    \
    f(read_before_sync) f(overwritten_before_read) f(written_after_arrive)          \
        f(block_barrier_is_not_enough) f(atomic_and_plain) f(neighbour_never_wrote) \
            f(halo_of_next_step) f(past_the_neighbours_end) f(right_exchange)       \
                f(right_arrive_and_wait) f(right_histogram) f(right_two_steps)      \
                    f(right_remote_barrier)
int main(int, char** words) {
    int* out;
    cudaMalloc(&out, 2 * n * sizeof(int));
    cudaMemset(out, 0, 2 * n * sizeof(int));
#define CASE(name)                \
    if (!strcmp(words[1], #name)) \
        name<<<2, n>>>(out);
    CASES(CASE)
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(out);
}
