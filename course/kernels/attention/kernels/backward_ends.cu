// nvcc -arch=sm_90a -cubin backward_ends.cu
// What runs before and behind the Hopper rungs of the backward pass.
// Grid: (tiles of queries, heads, batch), block: 256 threads.
#include "backward_tiles.cuh"

// lse in powers of 2, infinite where a query sees no key or is none: its weights are 0. delta.
// dq's sums are set to 0.
__global__ void prepare(float* rows, float* sums, const bf16* out, const bf16* dout,
                        const float* lse, Problem p, Strides of_out, Strides of_dout) {
    const int LANES = DIM / 8;  // that have a row, 16 bytes each
    int head = blockIdx.y;
    int batch = blockIdx.z;
    size_t tile = ((size_t)batch * p.heads + head) * gridDim.x + blockIdx.x;
    Between between = {rows, sums};
    float* own = between.rows_of(tile);
    int x = threadIdx.x % LANES * 8;
    for (int y = threadIdx.x / LANES; y < QUERIES; y += blockDim.x / LANES) {
        int row = blockIdx.x * QUERIES + y;
        float delta = 0;
        if (row < p.queries) {
            uint4 a = *(const uint4*)(out + of_out.at(batch, row, head) + x);
            uint4 b = *(const uint4*)(dout + of_dout.at(batch, row, head) + x);
            const __nv_bfloat162* left = (const __nv_bfloat162*)&a;
            const __nv_bfloat162* right = (const __nv_bfloat162*)&b;
            for (int i = 0; i < 4; ++i) {
                float2 l = __bfloat1622float2(left[i]), r = __bfloat1622float2(right[i]);
                delta += l.x * r.x + l.y * r.y;
            }
        }
        for (int lane = LANES / 2; lane > 0; lane /= 2)
            delta += __shfl_xor_sync(~0u, delta, lane);
        if (x == 0) {
            float own_lse = row < p.queries ? lse[place_of(p, batch, head, row)] : -INFINITY;
            own[y] = own_lse > -INFINITY ? own_lse * LOG2_E : INFINITY;
            own[QUERIES + y] = delta;
        }
    }
    float4* zeros = (float4*)between.sums_of(tile);
    for (int i = threadIdx.x; i < QUERIES * DIM / 4; i += blockDim.x)
        zeros[i] = {0, 0, 0, 0};
}

// dq of a tile of queries: its sums lie as the threads of attention hold them.
__global__ __launch_bounds__(256) void finish(bf16* dq, const float* sums, Problem p,
                                              Strides of_dq) {
    const int PITCH = DIM + 8;
    __shared__ __align__(16) bf16 staged[QUERIES * PITCH];
    int head = blockIdx.y;
    int batch = blockIdx.z;
    size_t tile = ((size_t)batch * p.heads + head) * gridDim.x + blockIdx.x;
    int warpgroup = threadIdx.x / 128;
    int thread = threadIdx.x % 128;
    const float4* own = (const float4*)(sums + tile * QUERIES * DIM + warpgroup * DQ_PART);
    int x = (DIM == 128 ? warpgroup * ROWS : 0) + thread / 32 * 16 + thread % 32 / 4;
    int y = (DIM == 128 ? 0 : warpgroup * DQ_QUERIES) + thread % 4 * 2;
    float scale = p.scale * LN_2;
#pragma unroll
    for (int i = 0; i < DQ_QUERIES / 8; ++i) {
        float4 four = own[i * 128 + thread];
        bf16* to = staged + (y + i * 8) * PITCH + x;
        to[0] = __float2bfloat16(four.x * scale);
        to[PITCH] = __float2bfloat16(four.y * scale);
        to[8] = __float2bfloat16(four.z * scale);
        to[PITCH + 8] = __float2bfloat16(four.w * scale);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < QUERIES * DIM / 8; i += 256) {
        int row = blockIdx.x * QUERIES + i / (DIM / 8);
        int column = i % (DIM / 8) * 8;
        if (row < p.queries)
            *(uint4*)(dq + of_dq.at(batch, row, head) + column) =
                *(const uint4*)&staged[i / (DIM / 8) * PITCH + column];
    }
}
