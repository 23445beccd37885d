// A communicator: each rank's memory, where the others' is mapped, and the launches. Called from
// Python (course/kernels/many_gpus/communicator.py).
//
// Ranks are processes, one a GPU, and reach each other's memory through CUDA IPC handles; or they
// are threads of one process, which need no handles. Both end in the same thing, an address for
// each rank.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>
#include "all_reduce.cuh"

static thread_local std::string last_error;

static bool failed(cudaError_t code, const char* what) {
    if (code == cudaSuccess)
        return false;
    last_error = std::string(what) + ": " + cudaGetErrorString(code);
    return true;
}
#define TRY(call)            \
    if (failed(call, #call)) \
    return 0

enum Algorithm { ONE_SHOT, TWO_SHOT, PUSH, RING, PULL };
enum Type { FLOAT, BFLOAT16, TYPES };

constexpr int THREADS = 512;  // of a block at most
constexpr int LAG = 2;  // tiles that push sends ahead of those that it adds up
constexpr size_t ALIGNMENT = 256;

struct Message {
    void* out;
    const void* in;
    size_t count;
};

template <class T, int algorithm, int unroll>
__device__ void reduce(const Peers& peers, const Message& m, int channel, int channels) {
    T* out = static_cast<T*>(m.out);
    const T* in = static_cast<const T*>(m.in);
    if constexpr (algorithm == ONE_SHOT)
        one_shot(peers, out, in, m.count, channel, channels);
    if constexpr (algorithm == PULL)
        pull(peers, out, in, m.count, channel, channels);
    if constexpr (algorithm == TWO_SHOT)
        two_shot<T, unroll>(peers, out, in, m.count, channel, channels);
    if constexpr (algorithm == PUSH)
        push<T, unroll, LAG>(peers, out, in, m.count, channel, channels);
    if constexpr (algorithm == RING)
        ring<T, unroll>(peers, out, in, m.count, channel, channels);
}

template <class T, int algorithm, int unroll>
__global__ void __launch_bounds__(THREADS)
    all_reduce(const __grid_constant__ Peers peers, const __grid_constant__ Message message) {
    reduce<T, algorithm, unroll>(peers, message, blockIdx.x, gridDim.x);
}

// All ranks in one grid, blockIdx.y is the rank: to try the kernels where there is one GPU or none.
struct Everyone {
    Peers peers[MOST_RANKS];
    Message messages[MOST_RANKS];
};

template <class T, int algorithm, int unroll>
__global__ void __launch_bounds__(THREADS)
    all_reduce_together(const __grid_constant__ Everyone all) {
    int rank = blockIdx.y;
    reduce<T, algorithm, unroll>(all.peers[rank], all.messages[rank], blockIdx.x, gridDim.x);
}

typedef void (*Kernel)(Peers, Message);
typedef void (*Together)(Everyone);

struct Kernels {
    Kernel alone;
    Together together;
};

template <class T, int algorithm>
static Kernels with_unroll(int unroll) {
    switch (unroll) {
        case 1:
            return {all_reduce<T, algorithm, 1>, all_reduce_together<T, algorithm, 1>};
        case 2:
            return {all_reduce<T, algorithm, 2>, all_reduce_together<T, algorithm, 2>};
        case 4:
            return {all_reduce<T, algorithm, 4>, all_reduce_together<T, algorithm, 4>};
    }
    return {};
}

template <class T>
static Kernels with_algorithm(int algorithm, int unroll) {
    switch (algorithm) {
        case ONE_SHOT:
            return {all_reduce<T, ONE_SHOT, 1>, all_reduce_together<T, ONE_SHOT, 1>};
        case PULL:
            return {all_reduce<T, PULL, 1>, all_reduce_together<T, PULL, 1>};
        case TWO_SHOT:
            if (unroll == 8)
                return {all_reduce<T, TWO_SHOT, 8>, all_reduce_together<T, TWO_SHOT, 8>};
            return with_unroll<T, TWO_SHOT>(unroll);
        case PUSH:
            return with_unroll<T, PUSH>(unroll);
        case RING:
            return with_unroll<T, RING>(unroll);
    }
    return {};
}

static Kernels kernels(int type, int algorithm, int unroll) {
    if (type == FLOAT)
        return with_algorithm<float>(algorithm, unroll);
    if (type == BFLOAT16)
        return with_algorithm<__nv_bfloat16>(algorithm, unroll);
    return {};
}

static size_t size_of(int type) {
    return type == FLOAT ? sizeof(float) : sizeof(__nv_bfloat16);
}

// ---- memory of other processes ------------------------------------------------------------------
// The CPU runtime knows one process only: there ranks are threads, and none of these is called.
#ifdef __CUDA_CPU__
static bool handle_of(void*, void*) {
    last_error = "there are no handles without GPUs: ranks are threads of one process";
    return false;
}
static bool map(void** memory, const void*) {
    return handle_of(memory, nullptr);
}
static void unmap(void*) {}
#else
static bool handle_of(void* memory, void* to) {
    TRY(cudaIpcGetMemHandle(static_cast<cudaIpcMemHandle_t*>(to), memory));
    return true;
}

static bool map(void** memory, const void* handle) {
    cudaIpcMemHandle_t h;
    memcpy(&h, handle, sizeof h);
    TRY(cudaIpcOpenMemHandle(memory, h, cudaIpcMemLazyEnablePeerAccess));
    return true;
}

static void unmap(void* memory) {
    cudaIpcCloseMemHandle(memory);
}
#endif

// ---- the communicator ---------------------------------------------------------------------------
struct How {  // to run an all-reduce; the same on all ranks
    int algorithm;
    int type;
    int blocks;
    int threads;
    int unroll;
};

struct Communicator {
    Peers peers = {};
    size_t bytes = 0;  // of a rank's memory
    size_t heap = 0;  // where in it the part for messages begins
    bool mapped[MOST_RANKS] = {};  // by an IPC handle, to be closed

    ~Communicator() {
        for (int r = 0; r < peers.ranks; ++r)
            if (mapped[r])
                unmap(peers.base[r]);
        if (peers.base[peers.rank])
            cudaFree(peers.base[peers.rank]);
    }

    bool create(int rank, int ranks, size_t scratch_bytes, size_t heap_bytes, double seconds);
    bool reset();
    bool check(const Message& m, const How& how) const;
    bool run(const Message& m, const How& how, cudaStream_t stream);
};

static size_t rounded(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

bool Communicator::create(int rank, int ranks, size_t scratch_bytes, size_t heap_bytes,
                          double seconds) {
    peers.rank = rank;
    peers.ranks = ranks;
    peers.patience = static_cast<unsigned long long>(seconds * 1e9);
    peers.words = rounded(sizeof(Control));
    peers.scratch = peers.words + size_t(2) * CHANNELS * ranks * 2 * CHANNEL_BYTES;
    peers.scratch_bytes = rounded(scratch_bytes);
    heap = peers.scratch + peers.scratch_bytes;
    bytes = heap + rounded(heap_bytes);
    void* memory = nullptr;
    TRY(cudaMalloc(&memory, bytes));
    peers.base[rank] = static_cast<char*>(memory);
    return reset();
}

// Counters, flags and words as at the beginning.
bool Communicator::reset() {
    TRY(cudaDeviceSynchronize());
    TRY(cudaMemset(peers.base[peers.rank], 0, peers.scratch));
    TRY(cudaDeviceSynchronize());
    return true;
}

static bool refuse(const std::string& why) {
    last_error = why;
    return false;
}

// Kernels load 8 bytes in one shot and 16 in the others: addresses must be multiples of that.
static bool misaligned(const Message& m, int algorithm) {
    uintptr_t last_bits = algorithm == ONE_SHOT ? 7 : 15;
    return (reinterpret_cast<uintptr_t>(m.in) | reinterpret_cast<uintptr_t>(m.out)) & last_bits;
}

bool Communicator::check(const Message& m, const How& how) const {
    if (how.type < 0 || how.type >= TYPES)
        return refuse("unknown type");
    if (!kernels(how.type, how.algorithm, how.unroll).alone)
        return refuse("no such kernel");
    if (how.algorithm == RING && peers.ranks < 2)
        return refuse("a ring needs two ranks or more");
    if (misaligned(m, how.algorithm))
        return refuse("the message must begin at a multiple of 16 bytes (in one shot: of 8)");
    if (how.blocks < 1 || how.blocks > CHANNELS || how.threads < 32 || how.threads > THREADS)
        return refuse("1 to " + std::to_string(CHANNELS) + " blocks of 32 to " +
                      std::to_string(THREADS) + " threads are possible");
    size_t size = m.count * size_of(how.type),
           part = part_bytes(m.count, size_of(how.type), peers.ranks);
    if (how.algorithm == ONE_SHOT) {
        size_t units = (size + 7) / 8;
        if ((units + how.blocks - 1) / how.blocks * 8 > CHANNEL_BYTES)
            return refuse("the message is too long for one shot with so few blocks");
        return true;
    }
    for (const void* p : {static_cast<const void*>(m.out), m.in}) {
        const char* base = peers.base[peers.rank];
        bool here = p >= base + heap && static_cast<const char*>(p) + size <= base + bytes;
        bool must = how.algorithm == TWO_SHOT || p == (how.algorithm == PULL ? m.in : m.out);
        if (must && !here)
            return refuse("the message must lie in the communicator's memory");
    }
    if (how.algorithm == TWO_SHOT)
        return true;
    if (size % 16)
        return refuse("this algorithm needs whole 16 bytes");
    if (how.algorithm == PULL) {
        if (size / 16 > size_t(how.blocks) * how.threads)
            return refuse("a thread can pull 16 bytes, and there are too few threads");
        return true;
    }
    if (part * (peers.ranks - 1) > peers.scratch_bytes)
        return refuse("the message is too long for the scratch memory");
    return true;
}

bool Communicator::run(const Message& m, const How& how, cudaStream_t stream) {
    if (!check(m, how))
        return false;
    if (m.count == 0)  // such a call would wait for nobody, and one rank could get too far ahead
        return true;
    Kernel kernel = kernels(how.type, how.algorithm, how.unroll).alone;
    kernel<<<how.blocks, how.threads, 0, stream>>>(peers, m);
    TRY(cudaGetLastError());
    return true;
}

// ---- measurements of the link -------------------------------------------------------------------
// A copy by the multiprocessors: 16 bytes a thread and turn.
template <int unroll>
__global__ void __launch_bounds__(THREADS) copy_kernel(char* to, const char* from, size_t vectors) {
    size_t stride = size_t(gridDim.x) * blockDim.x;
    for (size_t first = blockIdx.x * blockDim.x + threadIdx.x; first < vectors;
         first += stride * unroll) {
        uint4 v[unroll] = {};
#pragma unroll
        for (int u = 0; u < unroll; ++u)
            if (first + u * stride < vectors)
                v[u] = load16(from + (first + u * stride) * 16);
#pragma unroll
        for (int u = 0; u < unroll; ++u)
            if (first + u * stride < vectors)
                store16(to + (first + u * stride) * 16, v[u]);
    }
}

// A word goes to and fro between two ranks: `rounds` times there and back. The time is that of all
// rounds but the first, in which the ranks find each other.
__global__ void ping_pong(const __grid_constant__ Peers peers, int peer, int rounds, bool begins,
                          unsigned long long* time) {
    word* mine = words_of(peers, peers.rank, CHANNELS - 1, 0, peer);
    word* theirs = words_of(peers, peer, CHANNELS - 1, 0, peers.rank);
    unsigned long long start = 0;
    for (int i = 1; i <= rounds; ++i) {
        unsigned flag = 0x80000000u + i;  // no message has such a number
        if (begins)
            send_words(theirs, make_uint2(i, i), flag);
        receive_words(peers, mine, flag, peer);
        if (!begins)
            send_words(theirs, make_uint2(i, i), flag);
        if (i == 1)
            start = nanoseconds();
    }
    *time = nanoseconds() - start;
    send_words(mine, make_uint2(0, 0), 0);  // ready for another time
}

// ---- what Python calls; 0 and null mean failure, comm_error says why ----------------------------
extern "C" {
const char* comm_error() {
    return last_error.c_str();
}

Communicator* comm_create(int rank, int ranks, size_t scratch, size_t heap, double seconds) {
    Communicator* c = new Communicator;
    if (c->create(rank, ranks, scratch, heap, seconds))
        return c;
    delete c;
    cudaGetLastError();
    return nullptr;
}

void comm_destroy(Communicator* c) {
    delete c;
}

int comm_handle(Communicator* c, void* to) {
    return handle_of(c->peers.base[c->peers.rank], to);
}

int comm_open(Communicator* c, int rank, const void* handle) {
    void* memory = nullptr;
    if (!map(&memory, handle))
        return false;
    c->peers.base[rank] = static_cast<char*>(memory);
    return c->mapped[rank] = true;
}

int comm_open_pointer(Communicator* c, int rank, void* memory) {
    c->peers.base[rank] = static_cast<char*>(memory);
    return true;
}

void* comm_base(Communicator* c, int rank) {
    return c->peers.base[rank];
}

size_t comm_heap(Communicator* c) {
    return c->heap;
}

size_t comm_peers_bytes() {
    return sizeof(Peers);
}

void comm_peers(Communicator* c, void* to) {
    memcpy(to, &c->peers, sizeof(Peers));
}

int comm_reset(Communicator* c) {
    return c->reset();
}

int comm_failure(Communicator* c, void* to) {
    TRY(cudaMemcpy(to, c->peers.base[c->peers.rank], sizeof(Failure), cudaMemcpyDeviceToHost));
    return true;
}

int comm_all_reduce(Communicator* c, void* out, const void* in, size_t count, const How* how,
                    cudaStream_t stream) {
    return c->run({out, in, count}, *how, stream);
}

int comm_all_reduce_together(Communicator** all, void** out, const void** in, size_t count,
                             const How* how) {
    Everyone everyone = {};
    int ranks = all[0]->peers.ranks;
    for (int r = 0; r < ranks; ++r) {
        everyone.peers[r] = all[r]->peers;
        everyone.messages[r] = {out[r], in[r], count};
        if (!all[r]->check(everyone.messages[r], *how))
            return false;
    }
    TRY(cudaDeviceSynchronize());
    void* arguments[] = {&everyone};
    Together kernel = kernels(how->type, how->algorithm, how->unroll).together;
    TRY(cudaLaunchCooperativeKernel(kernel, dim3(how->blocks, ranks), dim3(how->threads), arguments,
                                    0, nullptr));
    TRY(cudaDeviceSynchronize());
    return true;
}

// How many devices there are, from device 0 on, that all reach each other's memory: gaming cards
// often do not.
int comm_devices() {
    int count = 0, there = 0, back = 0;
    TRY(cudaGetDeviceCount(&count));
    for (int device = 1; device < count; ++device)
        for (int peer = 0; peer < device; ++peer) {
            TRY(cudaDeviceCanAccessPeer(&there, device, peer));
            TRY(cudaDeviceCanAccessPeer(&back, peer, device));
            if (!there || !back)
                return device;
        }
    return count;
}

// The device that this host thread's calls go to, and leave for those to reach the other ones.
int comm_use_device(int device) {
    int count = comm_devices();
    TRY(cudaSetDevice(device));
    for (int peer = 0; peer < count; ++peer) {
        if (peer == device)
            continue;
        cudaError_t code = cudaDeviceEnablePeerAccess(peer, 0);
        if (code == cudaErrorPeerAccessAlreadyEnabled)
            cudaGetLastError();
        else if (failed(code, "cudaDeviceEnablePeerAccess"))
            return false;
    }
    return true;
}

int comm_copy(void* to, const void* from, size_t bytes, cudaStream_t stream) {
    TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
    return true;
}

int comm_copy_kernel(void* to, const void* from, size_t bytes, int blocks, int threads,
                     cudaStream_t stream) {
    copy_kernel<4><<<blocks, threads, 0, stream>>>(static_cast<char*>(to),
                                                   static_cast<const char*>(from), bytes / 16);
    TRY(cudaGetLastError());
    return true;
}

int comm_ping_pong(Communicator* c, int peer, int rounds, int begins, void* time,
                   cudaStream_t stream) {
    ping_pong<<<1, 1, 0, stream>>>(c->peers, peer, rounds, begins,
                                   static_cast<unsigned long long*>(time));
    TRY(cudaGetLastError());
    return true;
}
}
