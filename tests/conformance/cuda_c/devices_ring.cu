// flags: -std=c++17
// An all-reduce round a ring of devices by peer copies: streams and events of each device say what
// waits for what, and one host thread drives all.
#include <cstdio>
#include <vector>

__global__ void add(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] += in[i];
}

struct Device {
    float *data, *arrived;
    cudaStream_t work, link;
    cudaEvent_t added, sent;
};

int main() {
    int count = 0;
    cudaGetDeviceCount(&count);
    const int part = 250, n = part * count, rounds = 3;
    std::vector<Device> ring(count);
    float* host;
    cudaMallocHost(&host, n * sizeof(float));
    for (int d = 0; d < count; d++) {
        Device& me = ring[d];
        cudaSetDevice(d);
        cudaStreamCreateWithFlags(&me.work, cudaStreamNonBlocking);
        cudaStreamCreateWithFlags(&me.link, cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&me.added, cudaEventDisableTiming);
        cudaEventCreateWithFlags(&me.sent, cudaEventDisableTiming);
        cudaMalloc(&me.data, n * sizeof(float));
        cudaMalloc(&me.arrived, part * sizeof(float));
        for (int i = 0; i < n; i++)
            host[i] = d + i % 7;
        cudaMemcpyAsync(me.data, host, n * sizeof(float), cudaMemcpyHostToDevice, me.work);
        cudaEventRecord(me.added, me.work);
        cudaEventSynchronize(me.added);  // the host fills its buffer anew
    }
    float scale = 1;
    for (int round = 0; round < rounds; round++, scale *= count)
        for (int step = 0; step < 2 * (count - 1); step++) {
            bool adding = step < count - 1;
            for (int d = 0; d < count; d++) {  // everyone sends a part to the next
                Device &me = ring[d], &next = ring[(d + 1) % count];
                int which = (d + 2 * count - step) % count;
                float* to = adding ? next.arrived : next.data + which * part;
                cudaSetDevice(d);
                cudaStreamWaitEvent(me.link, me.added, 0);
                cudaStreamWaitEvent(me.link, next.added, 0);
                cudaMemcpyPeerAsync(to, (d + 1) % count, me.data + which * part, d,
                                    part * sizeof(float), me.link);
                cudaEventRecord(me.sent, me.link);
            }
            for (int d = 0; d < count; d++) {  // and takes what the one before has sent
                Device &me = ring[d], &before = ring[(d + count - 1) % count];
                int which = (d + 2 * count - 1 - step) % count;
                cudaSetDevice(d);
                cudaStreamWaitEvent(me.work, before.sent, 0);
                cudaStreamWaitEvent(me.work, me.sent, 0);
                if (adding)
                    add<<<1, 256, 0, me.work>>>(me.data + which * part, me.arrived, part);
                cudaEventRecord(me.added, me.work);
            }
        }
    int wrong = 0;
    for (int d = 0; d < count; d++) {
        cudaSetDevice(d);
        cudaMemcpyAsync(host, ring[d].data, n * sizeof(float), cudaMemcpyDeviceToHost,
                        ring[d].work);
        cudaStreamSynchronize(ring[d].work);
        for (int i = 0; i < n; i++) {
            float first = count * (i % 7) + count * (count - 1) / 2;
            wrong += host[i] != (count > 1 ? first * scale / count : i % 7);
        }
        cudaDeviceSynchronize();
        cudaFree(ring[d].data);
        cudaFree(ring[d].arrived);
        cudaStreamDestroy(ring[d].work);
        cudaStreamDestroy(ring[d].link);
        cudaEventDestroy(ring[d].added);
        cudaEventDestroy(ring[d].sent);
    }
    cudaFreeHost(host);
    printf("wrong: %d\n", wrong);
}
