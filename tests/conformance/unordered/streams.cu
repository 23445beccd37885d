// Planted mistakes in the order of work: streams, events, managed memory, graphs; one a function,
// the program takes its name.
// expect host code reads memory; line 33; case managed_read_too_early
// expect host code writes memory; line 39; case managed_written_too_early
// expect host code reads memory; line 47; case waits_for_another_stream
// expect host code reads memory; line 55; case copy_not_waited_for
// expect host code reads memory; line 64; case event_never_waited_for
// expect in line 71 writes, in another stream; line 28; case two_streams
// expect in line 78 writes, in another stream; line 25; case cleared_in_another_stream
// expect in line 85 writes, in another stream; line 28; case beside_the_default_stream
// expect in line 94 writes, in another stream; line 28; case event_before_its_kernel
// expect in line 104 writes, in another stream; line 28; case waits_for_another_event
// expect in line 112 reads, in another stream; line 25; case source_overwritten
// expect in line 121 writes, in another stream; line 28; case graph_beside_its_user
// expect host code reads memory; line 139; case graph_not_waited_for
// expect in line 145 writes, in another stream; line 28; case two_streams_one_reader
// right: right_events right_default_stream right_graph right_managed right_copy
#include <cstdio>
#include <cstring>
const int n = 64, bytes = n * sizeof(int);
static cudaStream_t one, two, free_one;
static cudaEvent_t done, other_done;
static int *a, *b, *managed, *pinned;
__global__ void add(int* out, int value) {
    out[threadIdx.x] += value;
}
__global__ void copy(int* out, const int* in) {
    out[threadIdx.x] = in[threadIdx.x];
}

static void managed_read_too_early() {
    add<<<1, n>>>(managed, 1);
    printf("%d\n", managed[0]);
}

static void managed_written_too_early() {
    add<<<1, n>>>(managed, 1);
    for (int i = 0; i < n; ++i)
        managed[i] = i;
    cudaDeviceSynchronize();
}

static void waits_for_another_stream() {
    add<<<1, n, 0, one>>>(managed, 1);
    add<<<1, n, 0, two>>>(a, 1);
    cudaStreamSynchronize(two);
    printf("%d\n", managed[0]);
}

// The call returns at once where the memory of the host is pinned.
static void copy_not_waited_for() {
    add<<<1, n, 0, one>>>(a, 1);
    cudaMemcpyAsync(pinned, a, bytes, cudaMemcpyDeviceToHost, one);
    // missing: cudaStreamSynchronize(one);
    printf("%d\n", pinned[0]);
}

// The event stands before the copy.
static void event_never_waited_for() {
    add<<<1, n, 0, one>>>(a, 1);
    cudaEventRecord(done, one);
    cudaMemcpyAsync(pinned, a, bytes, cudaMemcpyDeviceToHost, one);
    cudaEventSynchronize(done);
    printf("%d\n", pinned[0]);
    cudaDeviceSynchronize();
}

static void two_streams() {
    cudaDeviceSynchronize();

    add<<<1, n, 0, one>>>(a, 1);
    copy<<<1, n, 0, two>>>(b, a);
    cudaDeviceSynchronize();
}

static void cleared_in_another_stream() {
    cudaDeviceSynchronize();
    cudaMemsetAsync(a, 0, bytes, one);
    add<<<1, n, 0, two>>>(a, 1);
    cudaDeviceSynchronize();
}

// This stream does not wait for the default one (cudaStreamNonBlocking).
static void beside_the_default_stream() {
    add<<<1, n>>>(a, 1);
    copy<<<1, n, 0, free_one>>>(b, a);
    cudaDeviceSynchronize();
}

static void event_before_its_kernel() {
    cudaDeviceSynchronize();
    cudaEventRecord(done, one);
    cudaStreamWaitEvent(two, done);
    add<<<1, n, 0, one>>>(a, 1);
    copy<<<1, n, 0, two>>>(b, a);
    cudaDeviceSynchronize();
}

static void waits_for_another_event() {
    cudaDeviceSynchronize();
    cudaEventRecord(other_done, free_one);
    cudaEventRecord(done, one);

    add<<<1, n, 0, one>>>(a, 1);
    cudaStreamWaitEvent(two, other_done);
    copy<<<1, n, 0, two>>>(b, a);
    cudaDeviceSynchronize();
}

static void source_overwritten() {
    cudaDeviceSynchronize();
    cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice, one);
    add<<<1, n, 0, two>>>(a, 1);
    cudaDeviceSynchronize();
}

static cudaGraphExec_t graph_of_additions(int* out) {
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
    add<<<1, n, 0, one>>>(out, 1);
    cudaStreamEndCapture(one, &graph);
    cudaGraphInstantiate(&ready, graph, 0);
    return ready;
}
static void graph_beside_its_user() {
    cudaGraphExec_t ready = graph_of_additions(a);
    cudaDeviceSynchronize();
    cudaGraphLaunch(ready, one);
    copy<<<1, n, 0, two>>>(b, a);
    cudaDeviceSynchronize();
}

static void graph_not_waited_for() {
    cudaGraphExec_t ready = graph_of_additions(managed);
    cudaDeviceSynchronize();
    cudaGraphLaunch(ready, one);
    cudaGraphLaunch(ready, one);
    printf("%d\n", managed[0]);
    cudaDeviceSynchronize();
}

static void two_streams_one_reader() {
    cudaDeviceSynchronize();
    add<<<1, n, 0, one>>>(a, 1);
    add<<<1, n, 0, free_one>>>(b, 1);
    cudaStreamSynchronize(free_one);
    copy<<<1, n, 0, two>>>(b, a);
    cudaDeviceSynchronize();
}

static void right_events() {
    cudaDeviceSynchronize();
    add<<<1, n, 0, one>>>(a, 1);
    cudaEventRecord(done, one);
    cudaStreamWaitEvent(two, done);
    copy<<<1, n, 0, two>>>(b, a);
    cudaEventRecord(other_done, two);
    cudaStreamWaitEvent(one, other_done);
    add<<<1, n, 0, one>>>(a, 1);
    cudaDeviceSynchronize();
}
static void right_default_stream() {
    add<<<1, n, 0, one>>>(a, 1);
    add<<<1, n>>>(a, 1);
    copy<<<1, n, 0, two>>>(b, a);
    cudaDeviceSynchronize();
}
static void right_graph() {
    cudaGraphExec_t ready = graph_of_additions(managed);
    cudaDeviceSynchronize();
    for (int i = 0; i < 3; ++i)
        cudaGraphLaunch(ready, one);
    cudaStreamSynchronize(one);
    if (managed[0] < 3)
        printf("wrong\n");
}
static void right_managed() {
    for (int i = 0; i < n; ++i)
        managed[i] = i;
    add<<<1, n>>>(managed, 1);
    cudaDeviceSynchronize();
    managed[0] += 1;
    add<<<1, n, 0, two>>>(managed, 1);
    cudaStreamSynchronize(two);
    if (managed[0] != 3)
        printf("wrong\n");
}
static void right_copy() {
    add<<<1, n, 0, one>>>(a, 1);
    cudaMemcpyAsync(pinned, a, bytes, cudaMemcpyDeviceToHost, one);
    cudaEventRecord(done, one);
    cudaEventSynchronize(done);
    if (pinned[0] < 1)
        printf("wrong\n");
}

// Host code may wait for a flag in its own memory, and read what the kernel stored before: then a
// __threadfence_system() must stand between the kernel's two stores.
// right: right_flag right_atomic_flag
// expect host code reads memory; line 213; case flag_without_fence
#include <cuda/atomic>
__global__ void tell(volatile int* data, volatile int* flag, bool fence) {
    *data = 7;
    if (fence)
        __threadfence_system();
    *flag = 1;
}
static void wait_for_flag(bool fence) {
    tell<<<1, 1>>>(pinned + 1, pinned, fence);
    while (*(volatile int*)pinned == 0)
        ;
    if (pinned[1] != 7)
        printf("wrong\n");
}
static void right_flag() {
    wait_for_flag(true);
}
static void flag_without_fence() {
    wait_for_flag(false);
}
__global__ void tell_atomically(int* data, cuda::atomic<int>* flag) {
    *data = 7;
    flag->store(1, cuda::memory_order_release);
}
static void right_atomic_flag() {
    cuda::atomic<int>* flag;
    cudaMallocManaged(&flag, sizeof *flag);
    new (flag) cuda::atomic<int>(0);
    tell_atomically<<<1, 1>>>(pinned, flag);
    while (flag->load(cuda::memory_order_acquire) == 0)
        ;
    if (*pinned != 7)
        printf("wrong\n");
    cudaDeviceSynchronize();
    cudaFree(flag);
}

#define CASES(f)                                                                                 \
    f(managed_read_too_early) f(managed_written_too_early) f(waits_for_another_stream)           \
        f(copy_not_waited_for) f(event_never_waited_for) f(two_streams)                          \
            f(cleared_in_another_stream) f(beside_the_default_stream) f(event_before_its_kernel) \
                f(waits_for_another_event) f(source_overwritten) f(graph_beside_its_user)        \
                    f(graph_not_waited_for) f(two_streams_one_reader) f(right_events)            \
                        f(right_default_stream) f(right_graph) f(right_managed) f(right_copy)    \
                            f(right_flag) f(right_atomic_flag) f(flag_without_fence)
int main(int, char** words) {
    cudaStreamCreate(&one);
    cudaStreamCreate(&two);
    cudaStreamCreateWithFlags(&free_one, cudaStreamNonBlocking);
    cudaEventCreate(&done);
    cudaEventCreate(&other_done);
    cudaMalloc(&a, bytes);
    cudaMalloc(&b, bytes);
    cudaMallocManaged(&managed, bytes);
    cudaMallocHost(&pinned, bytes);
    cudaMemset(a, 0, bytes);
    cudaMemset(b, 0, bytes);
    memset(managed, 0, bytes);
    memset(pinned, 0, bytes);
    cudaDeviceSynchronize();
#define RUN(name)                 \
    if (!strcmp(words[1], #name)) \
        name();
    CASES(RUN)
    cudaDeviceSynchronize();
    cudaFree(a);
    cudaFree(b);
    cudaFree(managed);
    cudaFreeHost(pinned);
}
