// The all-reduces of all_reduce.cuh with all ranks in one grid, to try them where there is one GPU
// or none: blockIdx.y is the rank. (communicator.cu launches each rank's kernel on its own GPU.)
#include "all_reduce.cuh"

enum Algorithm { ONE_SHOT, TWO_SHOT, PUSH, RING, PULL };

constexpr int LAG = 2;  // tiles that push sends ahead of those that it adds up

// Where things lie in a rank's memory, behind its Control: messages of words, what the peers send,
// the numbers, and their sums.
struct Layout {
    size_t words, scratch, in, out, end;

    __device__ Layout(int ranks, size_t count) {
        size_t bytes = (count * sizeof(float) + 255) / 256 * 256;
        words = (sizeof(Control) + 255) / 256 * 256;
        scratch = words + size_t(2) * CHANNELS * ranks * 2 * CHANNEL_BYTES;
        in = scratch + 2 * ranks * (bytes / ranks / 256 + 1) * 256;
        out = in + bytes;
        end = out + bytes;
    }
};

// sizes: where a rank's memory has its numbers and the sums, and how many bytes it has.
__global__ void layout(long long* sizes, int ranks, long long count) {
    Layout at(ranks, count);
    sizes[0] = at.in;
    sizes[1] = at.out;
    sizes[2] = at.end;
}

// memory: all ranks', zeros but for the numbers. patience: nanoseconds to wait for another rank.
// callers: only so many ranks make the call.
__global__ void all_reduce(unsigned char* memory, int ranks, long long count, int algorithm,
                           long long patience, int callers) {
    Layout at(ranks, count);
    Peers peers = {};
    peers.rank = blockIdx.y;
    peers.ranks = ranks;
    peers.patience = patience;
    peers.words = at.words;
    peers.scratch = at.scratch;
    for (int r = 0; r < ranks; ++r)
        peers.base[r] = reinterpret_cast<char*>(memory) + r * at.end;
    if (peers.rank >= callers)
        return;
    float* out = reinterpret_cast<float*>(peers.base[peers.rank] + at.out);
    const float* in = reinterpret_cast<const float*>(peers.base[peers.rank] + at.in);
    int channel = blockIdx.x;
    int channels = gridDim.x;
    if (algorithm == ONE_SHOT)
        one_shot(peers, out, in, count, channel, channels);
    if (algorithm == TWO_SHOT)
        two_shot<float, 1>(peers, out, in, count, channel, channels);
    if (algorithm == PUSH)
        push<float, 1, LAG>(peers, out, in, count, channel, channels);
    if (algorithm == RING)
        ring<float, 1>(peers, out, in, count, channel, channels);
    if (algorithm == PULL)
        pull(peers, out, in, count, channel, channels);
}
