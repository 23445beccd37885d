// Planted mistakes with variables of the device, lanes that take no part in a shuffle, memory of
// streams and barriers in shared memory; one a function, the program takes its name.
// expect the same global memory; line 23; case sum_in_variable
// expect the same global memory; line 29; case blocks_share_table
// expect the same global memory; line 36; case neighbour_in_table
// expect this reads what block 0; line 49; case ticket_without_fence
// expect took from lane; line 59; case lane_outside_of_mask
// expect took from lane; line 68; case float_of_absent_lane
// expect cudaFreeAsync in line; line 82; case freed_in_another_stream
// expect mbarrier.arrive; line 95; case barrier_not_announced
// expect that cudaMallocAsync in line; line 74; case used_before_it_is_there
// right: right_counts right_ticket right_flag right_unused_lanes right_free_behind_event right_barrier
#include <cuda/barrier>
#include <cstdio>
#include <cstring>
using Barrier = cuda::barrier<cuda::thread_scope_block>;
__device__ int total, table[64];
__device__ volatile int flag;
__device__ unsigned tickets;
const int n = 64;

__global__ void sum_in_variable_kernel() {
    total += threadIdx.x;
}
static void sum_in_variable(int*) {
    sum_in_variable_kernel<<<1, n>>>();
}
__global__ void blocks_share_table_kernel() {
    table[threadIdx.x] = blockIdx.x;
}
static void blocks_share_table(int*) {
    blocks_share_table_kernel<<<2, n>>>();
}
__global__ void neighbour_in_table_kernel(int* out) {
    table[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = table[(threadIdx.x + 1) % n];
}
static void neighbour_in_table(int* out) {
    neighbour_in_table_kernel<<<1, n>>>(out);
}
__global__ void ticket_without_fence_kernel(volatile int* parts, int* out) {
    if (threadIdx.x)
        return;
    parts[blockIdx.x] = blockIdx.x + 1;
    if (atomicInc(&tickets, gridDim.x - 1) < gridDim.x - 1)
        return;
    int all = 0;
    for (int i = 0; i < gridDim.x; i++)
        all += parts[i];
    *out = all;
}
static void ticket_without_fence(int* out) {
    ticket_without_fence_kernel<<<8, 32>>>(out, out + n);
}
__global__ void lane_outside_of_mask_kernel(int* out) {
    int v = threadIdx.x;
    if (threadIdx.x < 16)
        v += __shfl_down_sync(0xffff, v, 8);
    out[threadIdx.x] = v;
}
static void lane_outside_of_mask(int* out) {
    lane_outside_of_mask_kernel<<<1, 32>>>(out);
}
__global__ void float_of_absent_lane_kernel(float* out) {
    float v = threadIdx.x;
    if (threadIdx.x < 4)
        v = 2 * __shfl_xor_sync(0xf, v, 4) + 1;
    atomicAdd(out, v);
}
static void float_of_absent_lane(int* out) {
    float_of_absent_lane_kernel<<<1, 32>>>(reinterpret_cast<float*>(out));
}
__global__ void store(int* out) {
    out[threadIdx.x] = 1;
}
static cudaStream_t one, two;
static void freed_in_another_stream(int*) {
    int* p;
    cudaMallocAsync(&p, n * sizeof(int), two);
    cudaStreamSynchronize(two);
    store<<<1, n, 0, one>>>(p);
    cudaFreeAsync(p, two);
}
static void used_before_it_is_there(int*) {
    int* p;
    cudaMallocAsync(&p, n * sizeof(int), two);
    store<<<1, n, 0, one>>>(p);
    cudaStreamSynchronize(one);
    cudaFreeAsync(p, two);
}
__global__ void barrier_not_announced_kernel(int* out) {
    __shared__ Barrier b;
    if (threadIdx.x == blockDim.x - 1)
        init(&b, blockDim.x);
    b.arrive_and_wait();
    out[threadIdx.x] = 1;
}
static void barrier_not_announced(int* out) {
    barrier_not_announced_kernel<<<1, n>>>(out);
}

__global__ void right_counts_kernel(int* out) {
    atomicAdd(&total, 1);
    table[threadIdx.x] = 7;  // all store the same
    __syncthreads();
    if (threadIdx.x == 0)
        out[blockIdx.x] = table[n - 1];
}
static void right_counts(int* out) {
    right_counts_kernel<<<1, n>>>(out);
}
__global__ void right_ticket_kernel(volatile int* parts, int* out) {
    if (threadIdx.x)
        return;
    parts[blockIdx.x] = blockIdx.x + 1;
    __threadfence();
    if (atomicInc(&tickets, gridDim.x - 1) < gridDim.x - 1)
        return;
    __threadfence();
    int all = 0;
    for (int i = 0; i < gridDim.x; i++)
        all += parts[i];
    *out = all;
}
static void right_ticket(int* out) {
    right_ticket_kernel<<<8, 32>>>(out, out + n);
}
__global__ void right_flag_kernel(int* out) {
    if (blockIdx.x == 0) {
        table[threadIdx.x] = 3;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            flag = 1;
        }
        return;
    }
    if (threadIdx.x == 0) {
        while (flag == 0)
            ;
        __threadfence();
    }
    __syncthreads();
    out[threadIdx.x] = table[n - 1 - threadIdx.x];
}
static void right_flag(int* out) {
    right_flag_kernel<<<2, n>>>(out);
}
__global__ void right_unused_lanes_kernel(int* out) {
    int v = threadIdx.x;
    if (threadIdx.x < 16)
        for (int step = 8; step > 0; step /= 2)
            v += __shfl_down_sync(0xffff, v, step);  // lanes above 7 add what nobody uses
    if (threadIdx.x == 0)
        *out = v;
}
static void right_unused_lanes(int* out) {
    right_unused_lanes_kernel<<<1, 32>>>(out);
}
static void right_free_behind_event(int*) {
    int* p;
    cudaEvent_t there, done;
    cudaEventCreate(&there);
    cudaEventCreate(&done);
    cudaMallocAsync(&p, n * sizeof(int), two);
    cudaEventRecord(there, two);
    cudaStreamWaitEvent(one, there);
    store<<<1, n, 0, one>>>(p);
    cudaEventRecord(done, one);
    cudaStreamWaitEvent(two, done);
    cudaFreeAsync(p, two);
    cudaEventDestroy(there);
    cudaEventDestroy(done);
}
__global__ void right_barrier_kernel(int* out) {
    __shared__ Barrier b, of_warp[2];
    int warp = threadIdx.x / 32;
    if (threadIdx.x == 5)
        init(&b, blockDim.x);
    if (threadIdx.x % 32 == 3)
        init(&of_warp[warp], 32);
    __syncwarp();
    of_warp[warp].arrive_and_wait();
    __syncthreads();
    b.arrive_and_wait();
    out[threadIdx.x] = 1;
}
static void right_barrier(int* out) {
    right_barrier_kernel<<<1, n>>>(out);
}

int main(int count, char** words) {
    int* out;
    cudaMalloc(&out, 2 * n * sizeof(int));
    cudaMemset(out, 0, 2 * n * sizeof(int));
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking);
    cudaDeviceSynchronize();
#define CASE(name)                             \
    if (count > 1 && !strcmp(words[1], #name)) \
        name(out);
    CASE(sum_in_variable)
    CASE(blocks_share_table)
    CASE(neighbour_in_table)
    CASE(ticket_without_fence)
    CASE(lane_outside_of_mask)
    CASE(float_of_absent_lane)
    CASE(freed_in_another_stream)
    CASE(barrier_not_announced)
    CASE(used_before_it_is_there)
    CASE(right_counts)
    CASE(right_ticket)
    CASE(right_flag)
    CASE(right_unused_lanes)
    CASE(right_free_behind_event)
    CASE(right_barrier)
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(out);
    cudaStreamDestroy(one);
    cudaStreamDestroy(two);
}
