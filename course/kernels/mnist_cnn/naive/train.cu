// The trainer of A CNN by hand, made of its parts: nvcc -O3 train.cu -o train
#include <algorithm>
#include <cmath>

// fail(...) says what happened and stops; CHECK(...) does so when a CUDA call failed
#include "../host/errors.cuh"
// read_file, and write_whole: the old file or the new one, never half of it
#include "../host/files.cuh"
// read_digits reads MNIST's IDX files into pinned memory
#include "../host/digits.cuh"
// read_order: for each epoch the digits' numbers, in the order in which they are used
#include "../host/order.cuh"
// load_weights and save_weights: all tensors in one file
#include "../host/checkpoint.cuh"
// options come as name=value
#include "../host/options.cuh"
// write_result: losses, accuracies and the time as JSON, for Python
#include "../host/result.cuh"

// kernels
#include "conv.cuh"
#include "conv_backward_weight.cuh"
#include "sum_over_batch.cuh"
#include "norm.cuh"
#include "norm_backward.cuh"
#include "pool.cuh"
#include "pool_backward.cuh"
#include "linear_layer.cuh"
#include "loss.cuh"
#include "step.cuh"

// the network: its arrays, and a step's launches
#include "network.cuh"
#include "block.cuh"
#include "forward.cuh"
#include "backward.cuh"

// the program around it
#include "feed.cuh"
#include "losses.cuh"
#include "trainer.cuh"

int main(int argc, char** argv) {
    Options o(argc, argv);
    Digits train = read_digits(o.digits, "train");
    Digits test = read_digits(o.digits, "t10k");
    if (o.batch < 1 || o.batch > train.count)
        fail("batch=%d: it must be between 1 and the %d digits that there are", o.batch,
             train.count);
    std::vector<int> order = read_order(o.order, train.count);

    cudaStream_t training, copies;
    CHECK(cudaStreamCreate(&training));
    CHECK(cudaStreamCreate(&copies));
    int room = std::max(o.batch, std::min(1000, test.count));
    Network net(room, training);
    Slot slots[2] = {Slot(room), Slot(room)};
    load_weights(net.w, SIZE, o.weights);
    Trainer trainer = {o, train, test, order, net, slots, copies, train.count / o.batch};
    trainer.run();
    CHECK(cudaDeviceReset());
    return 0;
}
