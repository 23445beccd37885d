// Tests of exercise mnist_cnn.backward; the learner's file is "answer.h". The kernels are the
// chapter's, the network is a small one, and its blocks only note what they are given.
#include "launched.h"
#include "../../kernels/mnist_cnn/naive/linear_layer.cuh"
#include "../../kernels/mnist_cnn/naive/loss.cuh"
#include "../../kernels/mnist_cnn/naive/pool.cuh"
#include "../../kernels/mnist_cnn/naive/sum_over_batch.cuh"

#define LAUNCH(n) ((n) + 255) / 256, 256, 0, stream

typedef std::vector<float> Numbers;
static int FEATURES, HIDDEN;
static const int CLASSES = 10;
enum { FC1, BIAS1, FC2, BIAS2, TENSORS };
static int SIZE[TENSORS];
static int blocks_called;

struct Block {
    float *p, *dx;
    const float *given_x, *given_dp;
    Numbers seen;  // what dp held then
    int number, elements;

    void backward(const float* x, const float* dp, int) {
        if (blocks_called++ != 2 - number)
            FAIL("wrong_value", "The way back goes through block two first, then through one.");
        given_x = x;
        given_dp = dp;
        if (number == 2)
            seen.assign(dp, dp + elements);
    }
};

struct Network {
    cudaStream_t stream;
    Block one, two;
    float *w[TENSORS], *dw[TENSORS];
    float *x, *h, *logits, *dp, *dh, *dlogits, *losses, *loss;
    void backward(const unsigned char* labels, int B);
};
#include "answer.h"

static Numbers drawn(int count) {
    Numbers numbers(count);
    for (float& number : numbers)
        number = random_int(-1000, 1000) / 500.0f;
    return numbers;
}

// What an array holds that nobody has written: a NaN whose lowest bits say which array it was. A
// sum that reads it keeps them.
static const char* const ARRAYS[] = {"dw[FC1]", "dw[BIAS1]", "dw[FC2]", "dw[BIAS2]", "dp",
                                     "dh",      "dlogits",   "losses",  "loss"};

static float unwritten(int array) {
    uint32_t bits = 0x7fc00000u + array + 1;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static const char* array_of(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    uint32_t array = (bits & 0x3fffffu) - 1;
    return array < sizeof ARRAYS / sizeof *ARRAYS ? ARRAYS[array] : "";
}

// What the learner's launches left, against what they should have left.
static void compare(const char* name, const Numbers& ours, const std::vector<double>& expected,
                    const std::vector<double>& without_relu) {
    bool no_relu = true;
    int wrong = -1;
    for (size_t i = 0; i < ours.size(); ++i) {
        const char* from = std::isnan(ours[i]) ? array_of(ours[i]) : name;
        if (*from && strcmp(from, name) != 0)
            FAIL("unwritten",
                 "`%s` is made of what nobody had written yet in `%s`. Which array should its "
                 "launch read, and when?",
                 name, from);
        if (std::isnan(ours[i]))
            FAIL("unwritten", "Element %zu of `%s` was never written. Which launch writes it?", i,
                 name);
        if (wrong < 0 && std::fabs(ours[i] - expected[i]) > 1e-4 * (1 + std::fabs(expected[i])))
            wrong = i;
        no_relu = no_relu && std::fabs(ours[i] - without_relu[i]) < 1e-4;
    }
    if (wrong < 0)
        return;
    if (no_relu)
        FAIL("wrong_value",
             "`%s` is what comes when the gradient passes the ReLU everywhere: it may pass only "
             "where h is above 0, and before anything else reads dh.",
             name);
    const char* none = " No gradient passes the ReLU where h is 0: is `y` h, for all of dh?";
    FAIL("wrong_value", "Element %d of `%s`: %g expected, %g found.%s", wrong, name,
         expected[wrong], double(ours[wrong]), expected[wrong] == 0 ? none : "");
}

struct Slopes {  // of the two layers, in double
    std::vector<double> dw[TENSORS], dh, dp, dlogits;
    double loss;
};

static Slopes slopes(const Numbers (&w)[TENSORS], const Numbers& p, const Numbers& h,
                     const Numbers& logits, const std::vector<unsigned char>& labels, bool relu) {
    Slopes s;
    int B = labels.size();
    for (int t = 0; t < TENSORS; ++t)
        s.dw[t].assign(SIZE[t], 0);
    s.dh.assign(B * HIDDEN, 0);
    s.dp.assign(B * FEATURES, 0);
    s.dlogits.assign(B * CLASSES, 0);
    s.loss = 0;
    for (int b = 0; b < B; ++b) {
        double sum = 0;
        for (int n = 0; n < CLASSES; ++n)
            sum += std::exp(logits[b * CLASSES + n]);
        s.loss += (std::log(sum) - logits[b * CLASSES + labels[b]]) / B;
        for (int n = 0; n < CLASSES; ++n) {
            double softmax = std::exp(logits[b * CLASSES + n]) / sum;
            double slope = s.dlogits[b * CLASSES + n] = (softmax - (n == labels[b])) / B;
            s.dw[BIAS2][n] += slope;
            for (int k = 0; k < HIDDEN; ++k) {
                s.dw[FC2][n * HIDDEN + k] += slope * h[b * HIDDEN + k];
                s.dh[b * HIDDEN + k] += slope * w[FC2][n * HIDDEN + k];
            }
        }
        for (int n = 0; n < HIDDEN; ++n) {
            double& slope = s.dh[b * HIDDEN + n];
            slope = relu && h[b * HIDDEN + n] <= 0 ? 0 : slope;
            s.dw[BIAS1][n] += slope;
            for (int k = 0; k < FEATURES; ++k) {
                s.dw[FC1][n * FEATURES + k] += slope * p[b * FEATURES + k];
                s.dp[b * FEATURES + k] += slope * w[FC1][n * FEATURES + k];
            }
        }
    }
    return s;
}

static void one_batch(int B) {
    FEATURES = random_int(260, 300);  // more than a block has threads
    HIDDEN = random_int(11, 40);
    SIZE[FC1] = HIDDEN * FEATURES;
    SIZE[BIAS1] = HIDDEN;
    SIZE[FC2] = CLASSES * HIDDEN;
    SIZE[BIAS2] = CLASSES;
    Numbers w[TENSORS], dw[TENSORS];
    Network net;
    for (int t = 0; t < TENSORS; ++t) {
        w[t] = drawn(SIZE[t]);
        dw[t].assign(SIZE[t], unwritten(t));
        net.w[t] = w[t].data();
        net.dw[t] = dw[t].data();
    }
    Numbers p = drawn(B * FEATURES), h = drawn(B * HIDDEN), logits = drawn(B * CLASSES);
    for (float& value : h)
        value = std::max(value, 0.0f);
    std::vector<unsigned char> labels(B);
    for (unsigned char& label : labels)
        label = random_int(0, 9);
    Numbers dp(p.size(), unwritten(4)), dh(h.size(), unwritten(5));
    Numbers dlogits(logits.size(), unwritten(6)), losses(B, unwritten(7)), loss(1, unwritten(8));
    Numbers pixels(1), pooled(1), dx(1);
    net.stream = expected_stream = 7;
    net.one = {pooled.data(), nullptr, nullptr, nullptr, {}, 1, 0};
    net.two = {p.data(), dx.data(), nullptr, nullptr, {}, 2, B * FEATURES};
    net.x = pixels.data();
    net.h = h.data();
    net.logits = logits.data();
    net.dp = dp.data();
    net.dh = dh.data();
    net.dlogits = dlogits.data();
    net.losses = losses.data();
    net.loss = loss.data();
    blocks_called = 0;
    Slopes right = slopes(w, p, h, logits, labels, true);
    Slopes no_relu = slopes(w, p, h, logits, labels, false);

    net.backward(labels.data(), B);
    compare("loss", loss, {right.loss}, {NAN});
    compare("dlogits", dlogits, right.dlogits, std::vector<double>(B * CLASSES, NAN));
    for (int t : {FC2, BIAS2, FC1, BIAS1})
        compare(ARRAYS[t], dw[t], right.dw[t], no_relu.dw[t]);
    compare("dh", dh, right.dh, no_relu.dh);
    if (blocks_called != 2)
        FAIL("unwritten", "Both blocks' backward must be called, each once.");
    if (net.two.given_dp != dp.data() || net.one.given_dp != dx.data())
        FAIL("wrong_value", "Block two gets dp, and block one gets two.dx.");
    if (net.two.given_x != pooled.data() || net.one.given_x != pixels.data())
        FAIL("wrong_value", "Block two read one.p, and block one read x.");
    compare("dp", net.two.seen, right.dp, no_relu.dp);
}

void run_tests() {
    for (int B : {1, 3, random_int(4, 40)})
        one_batch(B);
}
