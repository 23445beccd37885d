// flags: -std=c++17 -lnccl
// NCCL with one thread for all devices: every collective in a group, and numbers round a ring.
#include <cstdio>
#include <functional>
#include <vector>
#include <nccl.h>

const int n = 500;

struct Ranks {
    int count = 0, wrong = 0;
    std::vector<ncclComm_t> comms;
    std::vector<cudaStream_t> streams;
    std::vector<float*> in, out;

    Ranks() {
        cudaGetDeviceCount(&count);
        comms.resize(count);
        ncclCommInitAll(comms.data(), count, nullptr);
        for (int r = 0; r < count; r++) {
            cudaSetDevice(r);
            streams.emplace_back();
            in.emplace_back();
            out.emplace_back();
            cudaStreamCreate(&streams[r]);
            cudaMalloc(&in[r], n * count * sizeof(float));
            cudaMalloc(&out[r], n * count * sizeof(float));
            std::vector<float> start(n * count);
            for (int i = 0; i < n * count; i++)
                start[i] = (r + 1) * (i % 10);
            cudaMemcpy(in[r], start.data(), n * count * sizeof(float), cudaMemcpyHostToDevice);
        }
    }
    ~Ranks() {
        for (int r = 0; r < count; r++) {
            cudaStreamDestroy(streams[r]);
            cudaFree(in[r]);
            cudaFree(out[r]);
            ncclCommDestroy(comms[r]);
        }
    }
    // One call of each rank as a group; then value(rank, i) is what `out` must have.
    void together(const char* name, int values, std::function<ncclResult_t(int)> call,
                  std::function<float(int, int)> value) {
        int before = wrong;
        ncclGroupStart();
        for (int r = 0; r < count; r++)
            wrong += call(r) != ncclSuccess;
        wrong += ncclGroupEnd() != ncclSuccess;
        for (int r = 0; r < count; r++) {
            std::vector<float> got(values);
            cudaSetDevice(r);
            cudaMemcpyAsync(got.data(), out[r], values * sizeof(float), cudaMemcpyDeviceToHost,
                            streams[r]);
            cudaStreamSynchronize(streams[r]);
            for (int i = 0; i < values; i++)
                wrong += got[i] != value(r, i);
        }
        printf("%s: %s\n", name, wrong == before ? "right" : "wrong");
    }
};

int main() {
    Ranks all;
    const int count = all.count;
    auto &in = all.in, &out = all.out;
    auto& comms = all.comms;
    auto& streams = all.streams;
    float total = count * (count + 1) / 2;
    all.together(
        "all-reduce", n,
        [&](int r) {
            return ncclAllReduce(in[r], out[r], n, ncclFloat, ncclSum, comms[r], streams[r]);
        },
        [&](int, int i) { return total * (i % 10); });
    all.together(
        "largest", n,
        [&](int r) {
            return ncclAllReduce(in[r], out[r], n, ncclFloat, ncclMax, comms[r], streams[r]);
        },
        [&](int, int i) { return float(count * (i % 10)); });
    all.together(
        "broadcast", n,
        [&](int r) {
            return ncclBroadcast(in[r], out[r], n, ncclFloat, count - 1, comms[r], streams[r]);
        },
        [&](int, int i) { return float(count * (i % 10)); });
    all.together(
        "all-gather", n * count,
        [&](int r) { return ncclAllGather(in[r], out[r], n, ncclFloat, comms[r], streams[r]); },
        [&](int, int i) { return float((i / n + 1) * (i % n % 10)); });
    all.together(
        "reduce-scatter", n,
        [&](int r) {
            return ncclReduceScatter(in[r], out[r], n, ncclFloat, ncclSum, comms[r], streams[r]);
        },
        [&](int r, int i) { return total * ((r * n + i) % 10); });
    all.together(
        "ring", n,
        [&](int r) {
            ncclSend(in[r], n, ncclFloat, (r + 1) % count, comms[r], streams[r]);
            return ncclRecv(out[r], n, ncclFloat, (r + count - 1) % count, comms[r], streams[r]);
        },
        [&](int r, int i) { return float(((r + count - 1) % count + 1) * (i % 10)); });
    return all.wrong;
}
