// The trainer: device memory, the order of the kernels, copies beside them, a graph of the whole
// step. Called from Python.
// A step:
//   copies   batch to the GPU, patch_moments
//   main       conv_forward, fc1_forward, head, fc1_backward, conv_backward_input, update
//   branch                                                    conv_backward_weights
// Where there is more shared memory, conv_backward takes the place of both convolutions' kernels;
// for small batches, on compute capability 9.0, `middle` that of the three before it.
#include <algorithm>
#include <string>
#include <vector>
#include "around_sockets.cuh"
#include "conv1.cuh"
#include "conv_backward.cuh"
#include "conv_forward.cuh"
#include "linear.cuh"
#include "middle.cuh"
#include "one_pass.cuh"
#include "sockets.cuh"
#include "update.cuh"

// What can be switched off, to measure what it brings (fast.py says what each means).
struct Options {
    bool graph;
    bool overlap;
    bool keep_gradients;
    bool branches;
    bool moments;
    bool one_update;
    bool early;
    bool splits;
    bool middle;
    bool one_pass;
};

static thread_local std::string last_error;

static bool failed(cudaError_t code, const char* what) {
    if (code == cudaSuccess)
        return false;
    last_error = std::string(what) + ": " + cudaGetErrorString(code);
    return true;
}
#define TRY(call)            \
    if (failed(call, #call)) \
    return false

struct Trainer {
    Options options = {};
    Sockets mine = {};
    int processors = 1;
    int middle_group = 0;  // images that `middle` takes at a time; 0: there is none
    int few = 0;  // a batch up to so many images gets two blocks for each image
    Network net[2] = {};  // alike but for the batch that they read
    std::vector<void*> memory;  // device memory to free
    cudaStream_t main = nullptr;
    cudaStream_t copies = nullptr;
    cudaStream_t branch = nullptr;
    cudaEvent_t arrived[2] = {};  // a batch is on the GPU
    cudaEvent_t used[2] = {};  // its step is done
    cudaEvent_t fork = nullptr;  // from main to branch
    cudaEvent_t join = nullptr;  // and back
    cudaGraphExec_t graph[2] = {};
    unsigned steps = 0;
    int launches = 0;  // kernels of a step, and memory set; with a graph
    uint8_t* images[2] = {};
    uint8_t* labels[2] = {};

    ~Trainer() {
        if (main)
            cudaStreamSynchronize(main);
        if (copies)
            cudaStreamSynchronize(copies);
        for (void* p : memory)
            cudaFree(p);
        for (cudaGraphExec_t g : graph)
            if (g)
                cudaGraphExecDestroy(g);
        for (cudaEvent_t e : {arrived[0], arrived[1], used[0], used[1], fork, join})
            if (e)
                cudaEventDestroy(e);
        for (cudaStream_t s : {main, copies, branch})
            if (s)
                cudaStreamDestroy(s);
    }

    template <class T>
    bool allocate(T*& to, size_t count) {
        TRY(cudaMalloc(reinterpret_cast<void**>(&to), count * sizeof(T)));
        memory.push_back(to);
        TRY(cudaMemset(to, 0, count * sizeof(T)));
        return true;
    }

    bool create(int batch, float rate, const Parameters* weights);
    bool ask_gpu();
    void divide_sums(Network& n);
    bool allocate_network(Network& n);
    bool allocate_batch(int slot);
    bool create_streams();
    bool allow_shared_memory();
    bool launch_early(void (*kernel)(Network), dim3 grid, int threads, int shared,
                      cudaStream_t stream, const Network& n, int cluster = 1);
    int at_once(int parts) const;
    void launch_statistics(const Network& n, cudaStream_t stream);
    bool launch_conv_forward(const Network& n, cudaStream_t stream);
    bool launch_conv_backward_input(const Network& n, cudaStream_t stream);
    bool launch_conv_backward_weights(const Network& n, cudaStream_t stream);
    bool launch_conv1_pool(const Network& n, cudaStream_t stream);
    bool launch_head(const Network& n, bool learns, cudaStream_t stream);
    bool launch_forward(const Network& n, bool learns, cudaStream_t stream);
    bool launch_backward(const Network& n, cudaStream_t stream);
    bool launch_conv_backward(const Network& n, cudaStream_t stream);
    bool launch_with_middle(const Network& n, cudaStream_t stream);
    bool launch_step(const Network& n, cudaStream_t stream);
    bool launch_update(const Network& n, cudaStream_t stream);
    bool launch_my_update(const Network& n, cudaStream_t stream);
    int at_most(int blocks) const;
    bool capture(int slot);
    bool send(int slot, const uint8_t* from_images, const uint8_t* from_labels, int count,
              cudaStream_t stream);
    bool step(const uint8_t* from_images, const uint8_t* from_labels);
    bool infer(const uint8_t* from_images, int count, float* logits);
};

template <class Kernel>
static bool allow(Kernel* kernel, int bytes) {
#ifdef __CUDA_CPU__
    bytes += 20480;  // it learns only at the first launch what the variables of a template take
#endif
    TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    // an SM that has less for its kernel lets no larger one begin beside it
    int all = cudaSharedmemCarveoutMaxShared;
    TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, all));
    return true;
}

// Of how many output channels' halves a block computes forward: one where shared memory is small.
constexpr int MOST_FORWARD = SMALL ? forward_shared<2>() : forward_shared<1>();
constexpr int MOST_SHARED = std::max({MOST_FORWARD, int(FC1_SHARED), int(FC1_BACKWARD_SHARED),
                                      int(INPUT_SHARED), int(WEIGHT_SHARED)});

// More than 48 KiB a block has to be asked for.
bool Trainer::allow_shared_memory() {
    bool good = allow(patch_moments, 0) && allow(head, 0);
    good = good && allow(update, 0) && allow(update_early, 0);
    good = good && allow(conv_forward<2>, forward_shared<2>());
    good = good && (SMALL || allow(conv_forward<1>, forward_shared<1>()));
#ifdef MINE
    good = good && allow(conv_forward<2, true>, forward_shared<2>());
    good = good && (SMALL || allow(conv_forward<1, true>, forward_shared<1>()));
#endif
    good = good && allow(fc1_forward, FC1_SHARED);
    good = good && allow(fc1_backward, FC1_BACKWARD_SHARED);
    good = good && allow(conv_backward_input<1>, INPUT_SHARED);
    good = good && allow(conv_backward_input<2>, INPUT_SHARED);
    good = good && allow(conv_backward_weights, WEIGHT_SHARED);
#ifdef ROOMY
    if (options.one_pass) {
        good = good && allow(conv_backward<1>, sizeof(OnePass));
        good = good && allow(conv_backward<2>, sizeof(OnePass));
    }
    if (options.middle) {
        good = good && allow(middle<8>, sizeof(Middle<8>));
        good = good && allow(middle<16>, sizeof(Middle<16>));
        good = good && allow(update_with_fc1, FC1_STEP_SHARED);
    }
#endif
    return good;
}

static void set_batch(Network& n, int batch) {
    n.batch = batch;
    n.share1 = 1.0 / (double(batch) * PIXELS);
    n.share2 = 1.0 / (double(batch) * WINDOWS1);
}

// What this GPU has; false if that is too little.
bool Trainer::ask_gpu() {
    int device = 0;
    int major = 0;
    int shared = 0;
    TRY(cudaGetDevice(&device));
    TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    if (major < 8 && !SMALL) {
        last_error =
            "bf16 and tf32 need tensor cores of compute capability 8.0 (Ampere) or newer, this GPU "
            "has " +
            std::to_string(major) + ".x: take fp16";
        return false;
    }
    TRY(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    if (shared < MOST_SHARED) {
        std::string needed = std::to_string(MOST_SHARED >> 10);
        std::string present = std::to_string(shared >> 10);
        last_error = "these kernels need " + needed +
                     " KiB of shared memory in a block, this GPU has " + present +
                     " KiB: bf16 needs half of what tf32 needs";
        return false;
    }
    // what lets kernels begin early is in the code only if it was compiled for 9.0 or newer
    cudaFuncAttributes code = {};
    TRY(cudaFuncGetAttributes(&code, head));
    bool clusters = major >= 9 && code.ptxVersion >= 90;
    options.early = options.early && clusters;
#ifdef ROOMY
    bool all_ours = !mine.conv1_pool && !mine.head && !mine.update;
    bool room = shared >= std::max(int(sizeof(OnePass)), int(sizeof(Middle<16>)));
    options.one_pass = options.one_pass && options.one_update && all_ours && room;
    options.middle = options.middle && options.one_pass && options.splits && clusters;
#else
    options.one_pass = options.middle = false;
#endif
    return true;
}

// How many blocks of this kind are launched for a whole batch: as many as run at the same time, or
// twice as many where an SM's shared memory (100 KiB on 8.6, 8.9 and 12.0) holds only one of them.
int Trainer::at_once(int parts) const {
    return std::max(1, BLOCKS * processors / parts);
}

// Into how many parts each long sum is divided, so that there are blocks for the whole GPU.
void Trainer::divide_sums(Network& n) {
    int tiles = (n.batch + TILE - 1) / TILE;
    n.fc1_splits = 1;
    n.fc1_backward_splits = 1;
    if (options.splits) {
        few = processors;
        int wanted = std::max(1, 2 * processors / tiles);
        n.fc1_splits = std::min(WINDOWS2, wanted);
        n.fc1_backward_splits = std::min(8, tiles);
    }
    int heads = (n.batch + HEAD_WARPS - 1) / HEAD_WARPS;
    n.head_blocks = mine.head ? 1 : std::min(heads, 2 * processors);
#ifdef ROOMY
    if (options.middle && n.batch <= MIDDLE_MOST) {
        int clusters = std::max(1, processors / 16);  // that are sure to run at the same time
        middle_group = n.batch <= 8 * clusters ? 8 : 16;
        int groups = (n.batch + middle_group - 1) / middle_group;
        n.head_blocks = std::min(groups, clusters) * CLUSTER;
    }
#endif
    n.conv2_splits = std::min(n.batch, options.one_pass ? processors : at_once(OUT_PARTS));
}

// All of the device memory but what belongs to a batch.
bool Trainer::allocate_network(Network& n) {
    size_t b = n.batch;
    size_t fc1 = size_t(HIDDEN) * FEATURES;
    size_t conv2 = C2 * TAPS * C1;
    bool good = allocate(n.weights, 1);
    if (options.keep_gradients)
        good = good && allocate(n.gradients, 1);
    good = good && allocate(n.copies, 1);
    good = good && allocate(n.norm1, 1);
    good = good && allocate(n.norm2, C2);
    good = good && allocate(n.sums, 1);
    good = good && allocate(n.y2, b * WINDOWS1 * C2);
    good = good && allocate(n.y2_best, b * FEATURES);
    good = good && allocate(n.fc1_partial, n.fc1_splits * b * HIDDEN);
    if (mine.conv1_pool) {
        good = good && allocate(n.pooled, b * WINDOWS1 * C1);
        good = good && allocate(n.conv1_weights, C1 * TAPS);
    }
    if (mine.head) {
        good = good && allocate(n.hidden, b * HIDDEN);
        good = good && allocate(n.head_out, (HEAD_ROWS + b) * HIDDEN);
        n.head_sums = reinterpret_cast<HeadSums*>(n.head_out);
    } else {
        good = good && allocate(n.head_sums, n.head_blocks);
    }
    good = good && allocate(n.logits, b * CLASSES);
    good = good && allocate(n.dh, b * HIDDEN);
    good = good && allocate(n.dz2, b * FEATURES);
    good = good && allocate(n.fc1_gradient, n.fc1_backward_splits * fc1);
    good = good && allocate(n.conv2_gradient, n.conv2_splits * conv2);
    good = good && allocate(n.losses, LOSSES);
    good = good && allocate(n.step, 1);
    return good;
}

// A place for a batch, its moments and its events.
bool Trainer::allocate_batch(int slot) {
    Network& n = net[slot];
    size_t b = n.batch;
    if (!allocate(images[slot], b * PIXELS) || !allocate(labels[slot], b))
        return false;
    if (!allocate(n.moments, 1))
        return false;
    n.images = images[slot];
    n.labels = labels[slot];
    TRY(cudaEventCreateWithFlags(&arrived[slot], cudaEventDisableTiming));
    TRY(cudaEventCreateWithFlags(&used[slot], cudaEventDisableTiming));
    return true;
}

bool Trainer::create_streams() {
    TRY(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    TRY(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    TRY(cudaStreamCreateWithFlags(&main, cudaStreamNonBlocking));
    TRY(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
    TRY(cudaStreamCreateWithFlags(&branch, cudaStreamNonBlocking));
    return true;
}

bool Trainer::create(int batch, float rate, const Parameters* weights) {
    if (!ask_gpu() || !allow_shared_memory())
        return false;
    Network n = {};
    n.rate = rate;
    n.use_moments = options.moments;
    set_batch(n, batch);
    divide_sums(n);
    if (!allocate_network(n))
        return false;
    for (int slot = 0; slot < 2; ++slot) {
        net[slot] = n;
        if (!allocate_batch(slot))
            return false;
    }
    if (!create_streams())
        return false;
    TRY(cudaMemcpy(n.weights, weights, sizeof(Parameters), cudaMemcpyHostToDevice));
    make_copies<<<HIDDEN * FEATURES / UPDATE_THREADS, UPDATE_THREADS>>>(n);
    TRY(cudaGetLastError());
    TRY(cudaDeviceSynchronize());
    return !options.graph || (capture(0) && capture(1));
}

// Launch a kernel that may begin while the one before it in the stream still runs (see
// tensor_core.cuh).
bool Trainer::launch_early(void (*kernel)(Network), dim3 grid, int threads, int shared,
                           cudaStream_t stream, const Network& n, int cluster) {
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim.x = cluster;
    attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = cluster > 1 ? attributes : attributes + 1;
    config.numAttrs = (cluster > 1) + options.early;
    TRY(cudaLaunchKernelEx(&config, kernel, n));
    return true;
}

// Only to compare with: batch norm 1 without the moments.
void Trainer::launch_statistics(const Network& n, cudaStream_t stream) {
    if (n.use_moments)
        return;
    int blocks = std::min(n.batch, 4 * processors);
    conv1_statistics<<<blocks, STATISTICS_THREADS, 0, stream>>>(n);
}

bool Trainer::launch_conv_forward(const Network& n, cudaStream_t stream) {
    auto* halves = conv_forward<2>;
    auto* whole = conv_forward<1>;
#ifdef MINE
    if (mine.conv1_pool) {
        halves = conv_forward<2, true>;
        whole = conv_forward<1, true>;
    }
#endif
    if (SMALL || n.batch <= few) {
        int images = n.batch <= few ? n.batch : std::min(n.batch, at_once(2));
        halves<<<dim3(images, 2), FORWARD_THREADS, forward_shared<2>(), stream>>>(n);
    } else {
        int images = std::min(n.batch, at_once(1));
        whole<<<images, FORWARD_THREADS, forward_shared<1>(), stream>>>(n);
    }
    TRY(cudaGetLastError());
    return true;
}

// So many blocks, or what keeps every multiprocessor busy. For the learner's kernels.
int Trainer::at_most(int blocks) const {
    return std::max(1, std::min(blocks, 8 * processors));
}

bool Trainer::launch_conv1_pool(const Network& n, cudaStream_t stream) {
    norm1_alone<<<1, FORWARD_THREADS, 0, stream>>>(n, n.conv1_weights);
    TRY(cudaGetLastError());
    TRY(mine.conv1_pool(at_most(n.batch), stream, n.pooled, n.images, n.conv1_weights,
                        n.norm1->scale, n.norm1->shift, n.batch));
    return true;
}

// learns: there are labels, and gradients are wanted. Else ours gives the logits.
bool Trainer::launch_head(const Network& n, bool learns, cudaStream_t stream) {
    if (!mine.head || !learns)
        return launch_early(head, n.head_blocks, HEAD_WARPS * 32, 0, stream, n);
    const Parameters* w = n.weights;
    size_t bytes = (HEAD_ROWS + size_t(n.batch)) * HIDDEN * sizeof(float);
    TRY(cudaMemsetAsync(n.head_out, 0, bytes, stream));
    int numbers = n.batch * HIDDEN;
    hidden_values<<<(numbers + 255) / 256, 256, 0, stream>>>(n, n.hidden);
    TRY(cudaGetLastError());
    TRY(mine.head(at_most((n.batch + 7) / 8), stream, n.head_out, n.hidden, w->fc2[0], w->fc2_bias,
                  n.labels, n.batch));
    const float* gradients = n.head_out + HEAD_ROWS * HIDDEN;
    numbers_of_hidden<<<(numbers + 255) / 256, 256, 0, stream>>>(n, gradients);
    TRY(cudaGetLastError());
    return true;
}

bool Trainer::launch_conv_backward_input(const Network& n, cudaStream_t stream) {
    bool small = n.batch <= few;
    int images = small ? n.batch : std::min(n.batch, at_once(OUT_PARTS));
    dim3 grid(images, small ? 2 : 1, OUT_PARTS);
    auto* kernel = small ? conv_backward_input<2> : conv_backward_input<1>;
    return launch_early(kernel, grid, INPUT_THREADS, INPUT_SHARED, stream, n);
}

bool Trainer::launch_conv_backward_weights(const Network& n, cudaStream_t stream) {
    dim3 grid(n.conv2_splits, OUT_PARTS);
    conv_backward_weights<<<grid, WEIGHT_THREADS, WEIGHT_SHARED, stream>>>(n);
    TRY(cudaGetLastError());
    return true;
}

// Both of the convolutions' gradients in one pass. A small batch has two blocks for each image, if
// all of them find a free SM: those of `middle` still have theirs when these begin.
bool Trainer::launch_conv_backward([[maybe_unused]] const Network& n,
                                   [[maybe_unused]] cudaStream_t stream) {
#ifdef ROOMY
    int taken = middle_group ? n.head_blocks : 0;
    bool small = options.splits && 2 * n.batch + taken <= processors;
    auto* kernel = small ? conv_backward<2> : conv_backward<1>;
    dim3 grid(n.conv2_splits, small ? 2 : 1);
    return launch_early(kernel, grid, ONE_PASS_THREADS, sizeof(OnePass), stream, n);
#else
    return false;
#endif
}

// The step where one kernel does all that lies between the convolutions.
bool Trainer::launch_with_middle([[maybe_unused]] const Network& n,
                                 [[maybe_unused]] cudaStream_t stream) {
#ifdef ROOMY
    auto* kernel = middle_group == 8 ? middle<8> : middle<16>;
    int shared = middle_group == 8 ? sizeof(Middle<8>) : sizeof(Middle<16>);
    int update_blocks = SMALL_BLOCKS + FC1_STEPS + CONV2_BLOCKS;
    launch_statistics(n, stream);
    return launch_conv_forward(n, stream) &&
           launch_early(kernel, n.head_blocks, MIDDLE_THREADS, shared, stream, n, CLUSTER) &&
           launch_conv_backward(n, stream) &&
           launch_early(update_with_fc1, update_blocks, UPDATE_THREADS, FC1_STEP_SHARED, stream, n);
#else
    return false;
#endif
}

bool Trainer::launch_step(const Network& n, cudaStream_t stream) {
    if (middle_group)
        return launch_with_middle(n, stream);
    return launch_forward(n, true, stream) && launch_backward(n, stream);
}

bool Trainer::launch_forward(const Network& n, bool learns, cudaStream_t stream) {
    int tiles = (n.batch + TILE - 1) / TILE;
    launch_statistics(n, stream);
    if (mine.conv1_pool && !launch_conv1_pool(n, stream))
        return false;
    if (!launch_conv_forward(n, stream))
        return false;
    dim3 grid(tiles, n.fc1_splits);
    return launch_early(fc1_forward, grid, LINEAR_THREADS, FC1_SHARED, stream, n) &&
           launch_head(n, learns, stream);
}

bool Trainer::launch_backward(const Network& n, cudaStream_t stream) {
    dim3 linear(WINDOWS2, n.fc1_backward_splits);
    if (!launch_early(fc1_backward, linear, LINEAR_THREADS, FC1_BACKWARD_SHARED, stream, n))
        return false;
    if (options.one_pass)
        return launch_conv_backward(n, stream) &&
               launch_early(update_early, UPDATE_BLOCKS, UPDATE_THREADS, 0, stream, n);
    // the two convolution kernels may run side by side
    cudaStream_t other = options.branches ? branch : stream;
    if (other != stream) {
        TRY(cudaEventRecord(fork, stream));
        TRY(cudaStreamWaitEvent(other, fork, 0));
    }
    if (!launch_conv_backward_input(n, stream) || !launch_conv_backward_weights(n, other))
        return false;
    if (other != stream) {
        TRY(cudaEventRecord(join, other));
        TRY(cudaStreamWaitEvent(stream, join, 0));
    }
    return mine.update ? launch_my_update(n, stream) : launch_update(n, stream);
}

// The two large matrices by the learner's kernel; the small parameters and the copies by ours.
bool Trainer::launch_my_update(const Network& n, cudaStream_t stream) {
    constexpr int conv2 = C2 * TAPS * C1;
    constexpr int fc1 = HIDDEN * FEATURES;
    update<<<1 + HEAD_ROWS, UPDATE_THREADS, 0, stream>>>(n, 0);
    TRY(cudaGetLastError());
    TRY(mine.update(at_most(conv2 / SOCKET_THREADS), stream, &n.weights->conv2[0][0][0],
                    n.conv2_gradient, conv2, n.conv2_splits, n.rate));
    TRY(mine.update(at_most(fc1 / SOCKET_THREADS), stream, n.weights->fc1[0], n.fc1_gradient, fc1,
                    n.fc1_backward_splits, n.rate));
    make_copies<<<fc1 / UPDATE_THREADS, UPDATE_THREADS, 0, stream>>>(n);
    TRY(cudaGetLastError());
    return true;
}

bool Trainer::launch_update(const Network& n, cudaStream_t stream) {
    if (options.one_update) {
        update<<<UPDATE_BLOCKS, UPDATE_THREADS, 0, stream>>>(n, 0);
    } else {
        // one kernel for the convolutions' small parameters, one for the head's, one for each large
        // matrix
        int first = 0;
        for (int blocks : {1, HEAD_ROWS, CONV2_BLOCKS, FC1_BLOCKS}) {
            update<<<blocks, UPDATE_THREADS, 0, stream>>>(n, first);
            first += blocks;
        }
    }
    TRY(cudaGetLastError());
    return true;
}

// What a graph launches: its kernels, and memory that it sets.
static bool count_launches(cudaGraph_t graph, int& launches) {
    size_t count = 0;
    TRY(cudaGraphGetNodes(graph, nullptr, &count));
    std::vector<cudaGraphNode_t> nodes(count);
    TRY(cudaGraphGetNodes(graph, nodes.data(), &count));
    launches = 0;
    for (cudaGraphNode_t node : nodes) {
        cudaGraphNodeType type;
        TRY(cudaGraphNodeGetType(node, &type));
        launches += type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemset;
    }
    return true;
}

// The step's kernels as one graph: launched with one call, and the GPU knows what comes next.
bool Trainer::capture(int slot) {
    cudaGraph_t recorded = nullptr;
    TRY(cudaStreamBeginCapture(main, cudaStreamCaptureModeThreadLocal));
    bool good = launch_step(net[slot], main);
    cudaError_t ended = cudaStreamEndCapture(main, &recorded);  // also after a launch that failed
    good = good && !failed(ended, "cudaStreamEndCapture");
    good = good && count_launches(recorded, launches);
    good = good && !failed(cudaGraphInstantiate(&graph[slot], recorded, 0), "cudaGraphInstantiate");
    if (recorded)
        cudaGraphDestroy(recorded);
    return good;
}

// Copy a batch from the host, and add up its moments, which no weights are needed for.
bool Trainer::send(int slot, const uint8_t* from_images, const uint8_t* from_labels, int count,
                   cudaStream_t stream) {
    size_t bytes = size_t(count) * PIXELS;
    TRY(cudaMemcpyAsync(images[slot], from_images, bytes, cudaMemcpyHostToDevice, stream));
    if (from_labels)
        TRY(cudaMemcpyAsync(labels[slot], from_labels, count, cudaMemcpyHostToDevice, stream));
    Network n = net[slot];
    set_batch(n, count);
    int wanted = (count + MOMENT_WARPS - 1) / MOMENT_WARPS;
    int blocks = std::min(wanted, 2 * processors);
    if (mine.patch_moments) {
        TRY(mine.patch_moments(at_most(count), stream, n.moments->product[0], n.images, count));
        return true;
    }
    patch_moments<<<blocks, MOMENT_WARPS * 32, 0, stream>>>(n);
    TRY(cudaGetLastError());
    return true;
}

bool Trainer::step(const uint8_t* from_images, const uint8_t* from_labels) {
    int slot = steps % 2;
    int batch = net[slot].batch;
    if (options.overlap) {  // this batch is copied while the step before it still runs
        if (steps >= 2)
            TRY(cudaStreamWaitEvent(copies, used[slot], 0));
        if (!send(slot, from_images, from_labels, batch, copies))
            return false;
        TRY(cudaEventRecord(arrived[slot], copies));
        TRY(cudaStreamWaitEvent(main, arrived[slot], 0));
    } else if (!send(slot, from_images, from_labels, batch, main)) {
        return false;
    }
    if (options.graph) {
        TRY(cudaGraphLaunch(graph[slot], main));
    } else if (!launch_step(net[slot], main)) {
        return false;
    }
    TRY(cudaEventRecord(used[slot], main));
    ++steps;
    return true;
}

// Logits of up to a batch of images with their own batch statistics; the weights stay as they are.
bool Trainer::infer(const uint8_t* from_images, int count, float* logits) {
    int slot = steps % 2;
    TRY(cudaStreamSynchronize(main));
    if (!send(slot, from_images, nullptr, count, main))
        return false;
    Network n = net[slot];
    set_batch(n, count);
    if (!launch_forward(n, false, main))
        return false;
    TRY(cudaMemsetAsync(n.sums, 0, sizeof(Sums), main));
    TRY(cudaMemsetAsync(n.moments, 0, sizeof(Moments), main));
    size_t bytes = size_t(count) * CLASSES * sizeof(float);
    TRY(cudaMemcpyAsync(logits, n.logits, bytes, cudaMemcpyDeviceToHost, main));
    TRY(cudaStreamSynchronize(main));
    return true;
}

static bool wait(Trainer* t) {
    TRY(cudaStreamSynchronize(t->copies));
    TRY(cudaStreamSynchronize(t->main));
    return true;
}

static bool fetch(Trainer* t, void* to, const void* from, size_t bytes) {
    if (!wait(t))
        return false;
    TRY(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
    return true;
}

// ---- what Python calls; 0 and null mean failure, cnn_error says why
extern "C" {
const char* cnn_error() {
    return last_error.c_str();
}
size_t cnn_parameter_bytes() {
    return sizeof(Parameters);
}
size_t cnn_option_bytes() {
    return sizeof(Options);
}
size_t cnn_shared_bytes() {
    return MOST_SHARED;
}

// mine: the learner's kernels, or null.
Trainer* cnn_create(int batch, float rate, const Options* options, const Parameters* weights,
                    const Sockets* mine) {
    Trainer* t = new Trainer;
    t->options = *options;
    if (mine)
        t->mine = *mine;
    if (t->create(batch, rate, weights))
        return t;
    delete t;
    cudaGetLastError();
    return nullptr;
}
void cnn_destroy(Trainer* t) {
    delete t;
}
int cnn_step(Trainer* t, const uint8_t* images, const uint8_t* labels) {
    return t->step(images, labels);
}
// Of a step: what its graph launches, and the moments' kernel; 0 without a graph.
int cnn_launches(Trainer* t) {
    return t->options.graph ? t->launches + 1 : 0;
}
int cnn_synchronize(Trainer* t) {
    return wait(t);
}
int cnn_infer(Trainer* t, const uint8_t* images, int count, float* logits) {
    return t->infer(images, count, logits);
}
int cnn_weights(Trainer* t, Parameters* to) {
    return fetch(t, to, t->net[0].weights, sizeof(Parameters));
}
int cnn_gradients(Trainer* t, Parameters* to) {
    return fetch(t, to, t->net[0].gradients, sizeof(Parameters));
}
int cnn_losses(Trainer* t, float* to) {
    return fetch(t, to, t->net[0].losses, LOSSES * sizeof(float));
}
int cnn_logits(Trainer* t, float* to) {
    size_t count = size_t(t->net[0].batch) * CLASSES;
    return fetch(t, to, t->net[0].logits, count * sizeof(float));
}
}
