// The finale's trainer on many GPUs, data parallel: every rank has all weights and a batch of its
// own, and takes the step with the mean of the ranks' gradients. Called from Python (trainer.py).
//
// The kernels of forward and backward are the finale's own. What is added:
//   update_together   the finale's `update`, with the sum over the ranks between gradient and step
//   share_sums        the batch norms' sums over all ranks' digits, if wanted: then the step is
//                     that of one GPU on the whole batch; else each rank normalizes with its own
//                     batch's statistics, as PyTorch's DistributedDataParallel does
//
// A step (what stands in brackets only with shared statistics):
//   copies   batch to the GPU, patch_moments, [share_sums]
//   main       conv_forward, [share_sums], fc1_forward, head, fc1_backward, [share_sums],
//              conv_backward_input, update_together: all but fc1
//   branch     conv_backward_weights
//   bucket     update_together: fc1, as soon as fc1_backward is done (or at the end, with the rest)
#include "../../mnist_cnn/kernels/trainer.cu"
#include "exchange.cuh"

constexpr int FC1_FIRST = 1 + HEAD_ROWS + CONV2_BLOCKS;  // update's blocks from here on are fc1's

// Slots of the update's exchange, in its blocks' order.
constexpr int SMALL_SLOTS = 160;  // block 0
constexpr int HEAD_SLOT = SMALL_SLOTS;  // 32 a row
constexpr int CONV2_SLOT = HEAD_SLOT + HEAD_ROWS * 32;  // 32 a block
constexpr int FC1_SLOT = CONV2_SLOT + CONV2_BLOCKS * 32;  // a thread
constexpr int UPDATE_SLOTS = FC1_SLOT + FC1_BLOCKS * UPDATE_THREADS;
constexpr int SUMS_SLOTS = 160;  // of share_sums

struct Sites {  // in the communicator's memory, the same on every rank
    Site update, moments, forward, backward;
};

struct Shared {  // what the kernels take beside the network
    Peers peers;
    Site site;
    bool statistics;  // are the batch norms' sums those of all ranks?
    Parameters*
        gradients;  // this rank's, of the small parameters; for ranks with statistics of their own
};

// ---- the batch norms' sums ----------------------------------------------------------------------
constexpr int SUMS_THREADS = 160;

// One block: `count` (even) doubles become their sums over the ranks.
__global__ void __launch_bounds__(SUMS_THREADS)
    share_sums(const __grid_constant__ Peers peers, const __grid_constant__ Site site,
               double* values, int count) {
    let_next_kernel_begin();
    wait_for_last_kernel();
    unsigned message = next_message(peers, site, 0);
    int i = threadIdx.x;
    if (i < count / 2) {
        double2* pair = reinterpret_cast<double2*>(values) + i;
        *pair = sum_over_ranks(peers, site, message, i, *pair);
    }
    message_done(peers, site, 0, message);
}

// ---- the update ---------------------------------------------------------------------------------
// The learning rate that the kernels are given is divided by the number of ranks: the sum's step is
// then the mean's.

__device__ inline void descend_four(const Network& net, float* parameter, float4 gradient,
                                    int count) {
    float four[4] = {gradient.x, gradient.y, gradient.z, gradient.w};
    for (int e = 0; e < count; ++e)
        descend(net, parameter + e, four[e]);
}

// Gradients of the first convolution and of the batch norms where each rank has statistics of its
// own: formed by update_conv1 without a step (rate 0), summed over the ranks, then the step is
// taken.
__device__ inline void update_small_apart(const Network& net, const Shared& shared,
                                          unsigned message) {
    constexpr int conv1 = C1 * 9 / 4, first = conv1 + 2 * C1 / 4, second = first + 2 * C2 / 4;
    static_assert(second <= SMALL_SLOTS, "a slot for each four parameters");
    Network local = net;
    local.rate = 0;
    local.gradients = shared.gradients;
    update_conv1(local);
    int i = threadIdx.x;
    if (i < C2) {
        descend(local, &net.weights->gamma2[i], float(net.sums->dz2_xhat[i]));
        descend(local, &net.weights->beta2[i], float(net.sums->dz2[i]));
    }
    __syncthreads();
    if (i < second) {  // conv1, gamma1, beta1 lie one behind the other, and so do gamma2, beta2
        float* parameter = i < first ? &net.weights->conv1[0][0] + i * 4
                                     : &net.weights->gamma2[0] + (i - first) * 4;
        float4 mine = *reinterpret_cast<float4*>(kept_gradient(local, parameter));
        float4 sum = sum_over_ranks(shared.peers, shared.site, message, i, mine);
        descend_four(net, parameter, sum, 4);
        for (int e = 0; e < 4 && i < conv1; ++e)
            write_conv1_copies(net.copies, (i * 4 + e) / 9, (i * 4 + e) % 9, parameter[e]);
    }
    __syncthreads();
    for (int k = i; k < int(sizeof(Sums) / 8); k += UPDATE_THREADS)
        reinterpret_cast<double*>(net.sums)[k] = 0;
    for (int k = i; k < int(sizeof(Moments) / 8); k += UPDATE_THREADS)
        reinterpret_cast<double*>(net.moments)[k] = 0;
}

// The same with statistics of all ranks: the sums behind batch norm 1 are added up, and then the
// finale's own update is right.
__device__ inline void update_small(const Network& net, const Shared& shared, unsigned message) {
    constexpr int doubles = C1 + C1 * 9;  // dz1 and dz1_patch
    static_assert(doubles / 2 <= SMALL_SLOTS, "a slot for each two sums");
    int i = threadIdx.x;
    if (i < doubles / 2) {
        double2* pair = reinterpret_cast<double2*>(net.sums->dz1) + i;
        *pair = sum_over_ranks(shared.peers, shared.site, message, i, *pair);
    }
    __syncthreads();
    update_convolutions(net);
}

__device__ inline void update_head_together(const Network& net, const Shared& shared,
                                            unsigned message, int row) {
    float4 mine = sum_of_shares(&net.head_sums->fc2[0][0] + row * HIDDEN,
                                sizeof(HeadSums) / sizeof(float), net.head_blocks);
    int lane = threadIdx.x;
    if (lane >= 32)
        return;
    float4 sum =
        sum_over_ranks(shared.peers, shared.site, message, HEAD_SLOT + row * 32 + lane, mine);
    Parameters* w = net.weights;
    if (row < CLASSES)
        return descend_four(net, &w->fc2[row][lane * 4], sum, 4);
    if (row == CLASSES)
        return descend_four(net, &w->fc1_bias[lane * 4], sum, 4);
    int left = CLASSES - lane * 4;  // of the last row: 10 biases, then the loss
    if (left > 0)
        descend_four(net, &w->fc2_bias[lane * 4], sum, min(left, 4));
    if (lane == CLASSES / 4) {
        net.losses[*net.step % LOSSES] = sum.z / shared.peers.ranks;
        *net.step += 1;
    }
}
static_assert(CLASSES % 4 == 2, "the loss is the third number of its four");

__device__ inline void update_conv2_together(const Network& net, const Shared& shared,
                                             unsigned message, int block) {
    float4 mine = sum_of_shares(net.conv2_gradient + block * 128, C2 * 9 * C1, net.conv2_splits);
    if (threadIdx.x >= 32)
        return;
    int slot = CONV2_SLOT + block * 32 + threadIdx.x;
    float4 sum = sum_over_ranks(shared.peers, shared.site, message, slot, mine);
    int at = block * 128 + threadIdx.x * 4;
    int channel = at / (9 * C1);
    int tap = at / C1 % 9;
    descend4(net, &net.weights->conv2[0][0][0] + at, &net.copies->conv2[tap][channel][at % C1],
             sum);
}

__device__ inline void update_fc1_together(const Network& net, const Shared& shared,
                                           unsigned message, int block) {
    int thread = block * UPDATE_THREADS + threadIdx.x;
    int at = thread * 4;
    float4 mine = sum_of_partials(net.fc1_gradient + at, size_t(HIDDEN) * FEATURES, 0,
                                  net.fc1_backward_splits, 1);
    int slot = FC1_SLOT + thread;
    float4 sum = shared.peers.ranks > 2
                     ? sum_in_two_shots(shared.peers, shared.site, message, slot, mine)
                     : sum_over_ranks(shared.peers, shared.site, message, slot, mine);
    descend4(net, &net.weights->fc1[0][0] + at, &net.copies->fc1[0][0] + at, sum);
}

// Blocks `first` and on of the update. Blocks wait only for the same block of the other ranks; all
// blocks of a launch fit on a GPU at once, so none keeps the one that it waits for from starting.
__global__ void __launch_bounds__(UPDATE_THREADS)
    update_together(const __grid_constant__ Network net, const __grid_constant__ Shared shared,
                    int first) {
    int number = blockIdx.x + first;
    int block = number;
    unsigned message = next_message(shared.peers, shared.site, number);
    if (block == 0) {
        if (shared.statistics)
            update_small(net, shared, message);
        else
            update_small_apart(net, shared, message);
    } else if (--block < HEAD_ROWS) {
        update_head_together(net, shared, message, block);
    } else if ((block -= HEAD_ROWS) < CONV2_BLOCKS) {
        update_conv2_together(net, shared, message, block);
    } else {
        update_fc1_together(net, shared, message, block - CONV2_BLOCKS);
    }
    message_done(shared.peers, shared.site, number, message);
}

// ---- the trainer --------------------------------------------------------------------------------
enum Together { STATISTICS = 1, BUCKET = 2 };

struct ParallelTrainer : Trainer {
    Peers peers = {};
    Sites sites = {};
    int together = 0;
    Parameters* small_gradients = nullptr;
    cudaStream_t bucket = nullptr;
    cudaEvent_t ready = nullptr, updated = nullptr;

    ~ParallelTrainer() {
        if (main)
            cudaStreamSynchronize(main);
        if (bucket)
            cudaStreamDestroy(bucket);
        for (cudaEvent_t e : {ready, updated})
            if (e)
                cudaEventDestroy(e);
    }

    bool create_together(int batch, float rate, const Parameters* weights);
    bool share(double* values, int count, const Site& site, cudaStream_t stream);
    bool launch_update_together(const Network& n, int first, int blocks, cudaStream_t stream);
    bool launch_backward_together(const Network& n);
    bool launch_step(const Network& n);
    bool capture_together(int slot);
    bool step_together(const uint8_t* from_images, const uint8_t* from_labels);
};

bool ParallelTrainer::create_together(int batch, float rate, const Parameters* weights) {
    bool graph_wanted = options.graph;
    options.graph = false;  // the finale's own step is not captured
    if (!create(batch, rate / peers.ranks, weights))
        return false;
    options.graph = graph_wanted;
    if (!allocate(small_gradients, 1))
        return false;
    TRY(cudaStreamCreateWithFlags(&bucket, cudaStreamNonBlocking));
    TRY(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    TRY(cudaEventCreateWithFlags(&updated, cudaEventDisableTiming));
    if (together & STATISTICS)
        for (Network& n : net) {
            n.share1 /= peers.ranks;
            n.share2 /= peers.ranks;
        }
    return !options.graph || (capture_together(0) && capture_together(1));
}

// The sums of `count` doubles over the ranks, as the next kernel of a stream.
bool ParallelTrainer::share(double* values, int count, const Site& site, cudaStream_t stream) {
    if (!(together & STATISTICS))
        return true;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = 1;
    config.blockDim = SUMS_THREADS;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = options.early && stream == main ? 1 : 0;
    TRY(cudaLaunchKernelEx(&config, share_sums, peers, site, values, count));
    return true;
}

bool ParallelTrainer::launch_update_together(const Network& n, int first, int blocks,
                                             cudaStream_t stream) {
    Shared shared = {peers, sites.update, bool(together & STATISTICS), small_gradients};
    update_together<<<blocks, UPDATE_THREADS, 0, stream>>>(n, shared, first);
    TRY(cudaGetLastError());
    return true;
}

// Trainer::launch_forward and launch_backward with the exchanges between their kernels.
bool ParallelTrainer::launch_step(const Network& n) {
    int tiles = (n.batch + TILE - 1) / TILE;
    if (!launch_conv_forward(n, main))
        return false;
    return share(n.sums->y2, 2 * C2, sites.forward, main) &&
           launch_early(fc1_forward, dim3(tiles, n.fc1_splits), LINEAR_THREADS, FC1_SHARED, main,
                        n) &&
           launch_early(head, n.head_blocks, HEAD_WARPS * 32, 0, main, n) &&
           launch_early(fc1_backward, dim3(WINDOWS2, n.fc1_backward_splits), LINEAR_THREADS,
                        FC1_BACKWARD_SHARED, main, n) &&
           launch_backward_together(n);
}

bool ParallelTrainer::launch_backward_together(const Network& n) {
    if (together & BUCKET) {  // fc1's gradient is complete: exchange it beside the convolutions
        TRY(cudaEventRecord(ready, main));
        TRY(cudaStreamWaitEvent(bucket, ready, 0));
        if (!launch_update_together(n, FC1_FIRST, FC1_BLOCKS, bucket))
            return false;
        TRY(cudaEventRecord(updated, bucket));
    }
    if (!share(n.sums->dz2, 2 * C2, sites.backward, main))
        return false;
    cudaStream_t other = options.branches ? branch : main;
    if (other != main) {
        TRY(cudaEventRecord(fork, main));
        TRY(cudaStreamWaitEvent(other, fork, 0));
    }
    if (!launch_conv_backward_input(n, main) || !launch_conv_backward_weights(n, other))
        return false;
    if (other != main) {
        TRY(cudaEventRecord(join, other));
        TRY(cudaStreamWaitEvent(main, join, 0));
    }
    if (!(together & BUCKET))
        return launch_update_together(n, 0, UPDATE_BLOCKS, main);
    if (!launch_update_together(n, 0, FC1_FIRST, main))
        return false;
    TRY(cudaStreamWaitEvent(main, updated, 0));
    return true;
}

bool ParallelTrainer::capture_together(int slot) {
    cudaGraph_t recorded = nullptr;
    TRY(cudaStreamBeginCapture(main, cudaStreamCaptureModeThreadLocal));
    bool good = launch_step(net[slot]);
    TRY(cudaStreamEndCapture(main, &recorded));
    if (!good)
        return false;
    TRY(cudaGraphInstantiate(&graph[slot], recorded, 0));
    TRY(cudaGraphDestroy(recorded));
    return true;
}

// Trainer::step with the moments of all ranks' digits. The copies always run beside the step
// before.
bool ParallelTrainer::step_together(const uint8_t* from_images, const uint8_t* from_labels) {
    int slot = steps % 2;
    if (steps >= 2)
        TRY(cudaStreamWaitEvent(copies, used[slot], 0));
    if (!send(slot, from_images, from_labels, net[slot].batch, copies))
        return false;
    double* moments = &net[slot].moments->product[0][0];
    if (!share(moments, sizeof(Moments) / sizeof(double), sites.moments, copies))
        return false;
    TRY(cudaEventRecord(arrived[slot], copies));
    TRY(cudaStreamWaitEvent(main, arrived[slot], 0));
    if (options.graph) {
        TRY(cudaGraphLaunch(graph[slot], main));
    } else if (!launch_step(net[slot])) {
        return false;
    }
    TRY(cudaEventRecord(used[slot], main));
    ++steps;
    return true;
}

// ---- what Python calls beside the finale's own functions ----------------------------------------
extern "C" {
int together_slots(int which) {  // 0: of the update; 1: of the sums
    return which == 0 ? UPDATE_SLOTS : SUMS_SLOTS;
}

int together_blocks() {
    return UPDATE_BLOCKS;
}

size_t together_sizes(int which) {  // so that Python's structs can be checked
    return which == 0 ? sizeof(Peers) : sizeof(Sites);
}

ParallelTrainer* together_create(int batch, float rate, const Options* options,
                                 const Parameters* weights, const Peers* peers, const Sites* sites,
                                 int together) {
    ParallelTrainer* t = new ParallelTrainer;
    t->options = *options;
    t->peers = *peers;
    t->sites = *sites;
    t->together = together;
    if (t->create_together(batch, rate, weights))
        return t;
    delete t;
    cudaGetLastError();
    return nullptr;
}

void together_destroy(ParallelTrainer* t) {
    delete t;
}

int together_step(ParallelTrainer* t, const uint8_t* images, const uint8_t* labels) {
    return t->step_together(images, labels);
}
}
