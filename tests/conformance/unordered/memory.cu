// Planted mistakes: global memory that nobody has written, races of threads and of blocks; one a
// kernel, the program takes its name.
// expect nobody has written: element 0 (4 bytes each) of the 4 bytes; line 40; case sum_not_cleared
// expect nobody has written: element; line 44; case added_to_nothing
// expect nobody has written: element; line 48; case half_copied
// expect nobody has written: element; line 48; case copied_from_nothing
// expect nobody has written: element; line 48; case grid_too_small
// expect nobody has written: element; line 52; case table_not_filled
// expect (16 bytes each) of the 1024 bytes from cudaMalloc; line 56; case vectors_not_filled
// expect nobody has written: element; line 48; case kernels_swapped
// expect nobody has written: element; line 60; case lock_not_cleared
// expect the same shared memory; line 68 or 70; case scan_in_place
// expect the same shared memory; line 77 or 79; case broadcast_overwritten
// expect the same shared memory; line 86; case histogram_plain
// expect the same shared memory; line 95 or 97; case one_buffer_for_two_steps
// expect the same global memory; line 102 or 104; case neighbour_block
// expect the same global memory; line 108 or 109; case maximum_plain
// expect the same shared memory; line 117 or 120; case barrier_of_half
// right: right_tail right_padding right_struct right_copy right_flagged right_exchange right_host
// right: right_same_value right_swap
#include <cstdio>
#include <cstring>
const int n = 256;
struct Pair {
    double weight;
    int count;
};
struct Sparse {
    float value[12];
    int used;
};
__device__ int id() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

__global__ void fill(int* out, int value) {
    out[id()] = value;
}
__global__ void count(int* sum) {
    atomicAdd(sum, 1);
}

__global__ void add(int* out, const int* in) {
    out[id()] += in[id()];
}

__global__ void copy(int* out, const int* in) {
    out[id()] = in[id()];
}

__global__ void gather(int* out, const int* in, const int* table) {
    out[id()] = in[table[id()]];
}

__global__ void copy_vectors(int4* out, const int4* in) {
    out[id()] = in[id()];
}

__global__ void locked(int* lock, int* out) {
    while (atomicCAS(lock, 0, 1) > 0)
        break;
    *out = 1;
}
__global__ void scan_in_place(int* out) {
    __shared__ int s[n];
    s[threadIdx.x] = 1;
    __syncthreads();
    int left = threadIdx.x ? s[threadIdx.x - 1] : 0;
    // missing: __syncthreads();
    s[threadIdx.x] += left;
    out[id()] = s[threadIdx.x];
}
__global__ void broadcast_overwritten(int* out) {
    __shared__ int one;
    for (int i = 0; i < 3; ++i) {
        if (threadIdx.x == 0)
            one = i;
        __syncthreads();
        out[id()] = one;
    }
}
__global__ void histogram_plain(int* out) {
    __shared__ int bins[n];
    bins[threadIdx.x] = 0;
    __syncthreads();
    ++bins[threadIdx.x % 8];
    __syncthreads();
    out[id()] = bins[threadIdx.x];
}
__global__ void one_buffer_for_two_steps(int* out) {
    __shared__ int s[n];
    s[threadIdx.x] = 0;
    for (int i = 0; i < 2; ++i) {
        __syncthreads();
        int next = s[(threadIdx.x + 1) % n] + 1;
        // missing: __syncthreads();
        s[threadIdx.x] = next;
    }
    out[id()] = s[threadIdx.x];
}
__global__ void neighbour_block(int* out) {
    out[id()] = id();
    __syncthreads();
    out[id()] = out[(id() + blockDim.x) % (gridDim.x * blockDim.x)];
}

__global__ void maximum_plain(int* out) {
    if (out[0] < id())
        out[0] = id();
}
__global__ void barrier_of_half(int* out) {
    __shared__ int s[n];
    s[threadIdx.x] = id();
    __syncthreads();
    for (int d = n / 2; d > 0; d /= 2) {
        if (threadIdx.x < d)
            s[threadIdx.x] += s[threadIdx.x + d];
        // missing: __syncthreads(), for all
        if (threadIdx.x == 0)
            out[blockIdx.x] = s[d / 2];
    }
}

// A float4 of which the last floats were never written, and are never used.
__global__ void sum_vectors(const float4* in, int m, float* out) {
    float4 v = in[threadIdx.x];
    float s = v.x;
    if (threadIdx.x * 4 + 1 < m)
        s += v.y + v.z + v.w;
    atomicAdd(out, s);
}
__global__ void make_pairs(Pair* out) {
    out[id()].weight = 1;
    out[id()].count = 2;
}
__global__ void copy_pairs(Pair* out, const Pair* in) {
    out[id()] = in[id()];
}
__global__ void make_sparse(Sparse* out) {
    out[id()].used = 1;
    out[id()].value[0] = 3;
}
__global__ void copy_sparse(Sparse* out, const Sparse* in) {
    Sparse mine = in[id()];
    memcpy(&out[id()], &mine, sizeof mine);
    if (out[id()].value[0] != 3)
        printf("wrong\n");
}
// The value counts only where the flag says that it is there.
__global__ void flagged(const int* flags, const int* values, int* out) {
    if (flags[id()])
        out[id()] = values[id()];
}
__global__ void exchange(int* places, int* out) {
    out[id()] = atomicExch(&places[id()], 7) * 0;
}
__global__ void same_value(int* out) {
    __shared__ bool any;
    if (threadIdx.x == 0)
        any = false;
    __syncthreads();
    if (threadIdx.x % 3 == 0)
        any = true;
    __syncthreads();
    out[id()] = any;
}
__global__ void swap_through_shared(int* out) {
    __shared__ int s[n];
    s[threadIdx.x] = id();
    __syncthreads();
    int theirs = s[n - 1 - threadIdx.x];
    __syncthreads();
    s[threadIdx.x] = theirs;
    out[id()] = s[threadIdx.x];
}

static const char* word;
static bool is(const char* name) {
    return strcmp(word, name) == 0;
}
static void reads(int* a, int* b, int* c, const int* host) {
    if (is("sum_not_cleared"))
        count<<<1, n>>>(c);
    if (is("added_to_nothing"))
        add<<<1, n>>>(b, a);
    if (is("half_copied")) {
        cudaMemcpy(b, host, n * 2, cudaMemcpyHostToDevice);
        copy<<<1, n>>>(a, b);
    }
    if (is("copied_from_nothing")) {
        int* fresh;
        cudaMalloc(&fresh, n * sizeof(int));
        cudaMemcpy(b, fresh, n * sizeof(int), cudaMemcpyDeviceToDevice);
        copy<<<1, n>>>(a, b);
        cudaFree(fresh);
    }
    if (is("grid_too_small")) {
        fill<<<1, 64>>>(b, 1);
        copy<<<1, n>>>(a, b);
    }
    if (is("table_not_filled"))
        gather<<<1, n>>>(a, a, b);
    if (is("vectors_not_filled"))
        copy_vectors<<<1, n / 4>>>((int4*)a, (int4*)b);
    if (is("kernels_swapped")) {
        copy<<<1, n>>>(a, b);
        fill<<<1, n>>>(b, 1);
    }
    if (is("lock_not_cleared"))
        locked<<<1, 1>>>(c, a);
}
static void races(int* a) {
    cudaMemset(a, 0, n * sizeof(int));
    if (is("scan_in_place"))
        scan_in_place<<<1, n>>>(a);
    if (is("broadcast_overwritten"))
        broadcast_overwritten<<<1, n>>>(a);
    if (is("histogram_plain"))
        histogram_plain<<<1, n>>>(a);
    if (is("one_buffer_for_two_steps"))
        one_buffer_for_two_steps<<<1, n>>>(a);
    if (is("neighbour_block"))
        neighbour_block<<<2, n / 2>>>(a);
    if (is("maximum_plain"))
        maximum_plain<<<2, n / 2>>>(a);
    if (is("barrier_of_half"))
        barrier_of_half<<<1, n>>>(a);
    if (is("right_same_value"))
        same_value<<<1, n>>>(a);
    if (is("right_swap"))
        swap_through_shared<<<1, n>>>(a);
}
template <class T>
static T* room(int many) {
    T* p;
    cudaMalloc(&p, many * sizeof(T));
    return p;
}
static void right(int* a, int* b, const int* host) {
    if (is("right_tail")) {  // 13 floats in four float4
        cudaMemcpy(b, host, 13 * sizeof(int), cudaMemcpyHostToDevice);
        sum_vectors<<<1, 4>>>((float4*)b, 13, (float*)a);
    }
    if (is("right_padding")) {
        Pair *from = room<Pair>(n), *to = room<Pair>(n);
        make_pairs<<<1, n>>>(from);
        copy_pairs<<<1, n>>>(to, from);
        cudaFree(from);
        cudaFree(to);
    }
    if (is("right_struct") || is("right_copy")) {
        Sparse *from = room<Sparse>(n), *to = room<Sparse>(n);
        make_sparse<<<1, n>>>(from);
        if (is("right_copy"))
            cudaMemcpy(to, from, n * sizeof(Sparse), cudaMemcpyDeviceToDevice);
        copy_sparse<<<1, n>>>(is("right_copy") ? from : to, is("right_copy") ? to : from);
        cudaFree(from);
        cudaFree(to);
    }
    if (is("right_flagged"))
        flagged<<<1, n>>>(a, b, a);
    if (is("right_exchange"))
        exchange<<<1, n>>>(b, a);
    if (is("right_host")) {  // bytes that look like those of fresh memory
        cudaMemset(b, 0xFF, n * sizeof(int));
        copy<<<1, n>>>(a, b);
    }
}
int main(int, char** words) {
    word = words[1];
    int host[n] = {}, *a = room<int>(n), *b = room<int>(n), *c = room<int>(1);
    cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
    reads(a, b, c, host);
    right(a, b, host);
    races(a);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(a);
    cudaFree(b);
    cudaFree(c);
}
