// Planted mistakes: the host uses what was copied from device memory that nobody has written; one
// a function, the program takes its name.
// expect element 0 (4 bytes each) of the 1024 bytes; line 39; case sum_of_nothing
// expect element 200 (4 bytes each) of the 1024 bytes; line 39; case grid_too_small
// expect element 0 (8 bytes each) of the 8 bytes; line 104; case result_not_stored
// expect element 7 (4 bytes each) of the 1024 bytes; line 111; case tail_of_a_row
// expect element 7 (4 bytes each) of the 1024 bytes; line 39; case kernel_failed
// expect element 128 (4 bytes each) of the 2048 bytes; line 39; case copied_twice
// expect element 0 (4 bytes each) of the 1024 bytes; line 39; case in_a_stream
// expect element 6 (4 bytes each) of the 512 bytes; line 85; case field_not_stored
// right: right_padded right_struct right_overwritten right_cleared right_again right_minus_one
// right: right_new_memory right_filled right_moved
#include <cstdio>
#include <cstring>
#include <vector>
const int n = 256;
const size_t bytes = n * sizeof(int);
struct Pair {
    double weight;
    int count;
};
__global__ void fill(int* out, int value) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
__global__ void weigh(Pair* out) {
    out[threadIdx.x].weight = 1;
    out[threadIdx.x].count = 2;
}
__global__ void weigh_only(Pair* out) {
    out[threadIdx.x].weight = 1;
}
__global__ void nothing(double*) {}

static int* device_ints;
static std::vector<int> host(n);
static int used(int first, int end) {
    int sum = 0;
    for (int i = first; i < end; ++i)
        sum |= host[i];
    return sum;
}
static void take() {
    cudaMemcpy(host.data(), device_ints, bytes, cudaMemcpyDeviceToHost);
}

static void sum_of_nothing() {
    take();
    used(0, n);
}
static void grid_too_small() {
    fill<<<2, 100>>>(device_ints, 1);
    take();
    used(0, n);
}
static void kernel_failed() {
    fill<<<1, 2048>>>(device_ints, 1);
    cudaGetLastError();
    take();
    used(7, n);
}
static void copied_twice() {
    int* other;
    cudaMalloc(&other, 2 * bytes);
    cudaMemset(other, 0, bytes);
    cudaMemcpy(other + n / 2, device_ints, bytes, cudaMemcpyDeviceToDevice);
    cudaMemcpy(host.data(), other, bytes, cudaMemcpyDeviceToHost);
    cudaFree(other);
    used(0, n);
}
static void in_a_stream() {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    fill<<<1, 100, 0, stream>>>(device_ints + 1, 1);
    cudaMemcpyAsync(host.data(), device_ints, bytes, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    used(0, n);
}
static void field_not_stored() {
    Pair *pairs, got[32];
    cudaMalloc(&pairs, sizeof got);
    weigh_only<<<1, 32>>>(pairs);
    cudaMemcpy(got, pairs, sizeof got, cudaMemcpyDeviceToHost);
    cudaFree(pairs);
    if (got[1].count > 0)
        printf("positive\n");
}
static void right_padded() {
    fill<<<2, 100>>>(device_ints, 1);
    take();
    used(0, 200);
}
static void right_minus_one() {
    fill<<<1, n>>>(device_ints, -1);
    take();
    used(0, n);
}
static void result_not_stored() {
    double *result, got = 0;
    cudaMalloc(&result, sizeof(double));
    nothing<<<1, 1>>>(result);
    cudaMemcpy(&got, result, sizeof(double), cudaMemcpyDeviceToHost);
    cudaFree(result);
    if (got > 0)
        printf("positive\n");
}
static void tail_of_a_row() {
    cudaMemset2D(device_ints, 32, 0, 28, 8);
    cudaMemcpy2D(host.data(), 32, device_ints, 32, 32, 8, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 8; ++i)
        if (host[i] != 0)
            printf("not cleared\n");
}
static void right_struct() {
    Pair *pairs, got[32];
    cudaMalloc(&pairs, sizeof got);
    weigh<<<1, 32>>>(pairs);
    cudaMemcpy(got, pairs, sizeof got, cudaMemcpyDeviceToHost);
    cudaFree(pairs);
    Pair copied = got[3];
    if (copied.count != 2 || got[4].weight != 1)
        printf("wrong\n");
}
static void right_overwritten() {
    take();
    for (int i = 0; i < n; ++i)
        host[i] = -1;
    used(0, n);
}
static void right_cleared() {
    take();
    memset(host.data(), 0xFF, bytes);
    used(0, n);
}
static void right_again() {
    take();
    cudaMemset(device_ints, 0xFF, bytes);
    take();
    used(0, n);
}
static void right_new_memory() {
    int* old = new int[n];
    cudaMemcpy(old, device_ints, bytes, cudaMemcpyDeviceToHost);
    delete[] old;
    int* other = new int[n];
    for (int i = 0; i < n; ++i)
        other[i] = -1;
    host.assign(other, other + n);
    delete[] other;
    used(0, n);
}
static void right_filled() {
    std::vector<int> minus(n, -1);
    cudaMemcpy(device_ints, minus.data(), bytes, cudaMemcpyHostToDevice);
    take();
    used(0, n);
}
static void right_moved() {
    take();
    std::vector<int> all(host);
    memcpy(host.data(), all.data(), bytes);
    used(0, 0);
}

#define CASE(name) {#name, name}
int main(int, char** names) {
    struct {
        const char* name;
        void (*run)();
    } cases[] = {
        CASE(kernel_failed),     CASE(copied_twice),      CASE(in_a_stream),
        CASE(field_not_stored),  CASE(sum_of_nothing),    CASE(grid_too_small),
        CASE(result_not_stored), CASE(tail_of_a_row),     CASE(right_padded),
        CASE(right_struct),      CASE(right_overwritten), CASE(right_cleared),
        CASE(right_again),       CASE(right_minus_one),   CASE(right_new_memory),
        CASE(right_filled),      CASE(right_moved),
    };
    cudaMalloc(&device_ints, bytes);
    for (auto& c : cases)
        if (!strcmp(c.name, names[1]))
            c.run();
    cudaFree(device_ints);
}
