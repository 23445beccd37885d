const int PIXELS = 28 * 28;
const int FEATURES = 64 * 7 * 7;  // what the second block hands to fc1
const int HIDDEN = 128;
const int CLASSES = 10;

enum { CONV1, GAMMA1, BETA1, CONV2, GAMMA2, BETA2, FC1, BIAS1, FC2, BIAS2, TENSORS };
const int SIZE[TENSORS] = {
    32 * 9, 32, 32, 64 * 32 * 9, 64, 64, HIDDEN * FEATURES, HIDDEN, CLASSES * HIDDEN, CLASSES};

float* floats(size_t count) {
    float* memory;
    CHECK(cudaMalloc(&memory, count * sizeof(float)));
    return memory;
}

struct Weights {  // on the GPU, with their gradients
    float* w[TENSORS];
    float* dw[TENSORS];

    Weights() {
        for (int t = 0; t < TENSORS; ++t) {
            w[t] = floats(SIZE[t]);
            dw[t] = floats(SIZE[t]);
        }
    }
};

struct Block {
    int C, K;  // channels in and out
    int side;  // of the picture
    int S;  // places: side * side
    float **w, **dw;  // three tensors: the convolution's, gamma, beta
    float *y, *a, *p;  // results on the way up: convolution, ReLU, pooling
    float *d, *dx;  // gradients on the way down: inside the block, of its input
    float *mean, *invstd;
    float* share;  // each image's share of the weights' gradient
    unsigned char* winner;
    cudaStream_t stream;

    Block(int C, int K, int side, size_t B, float** w, float** dw, cudaStream_t stream)
        : C(C), K(K), side(side), S(side * side), w(w), dw(dw), stream(stream) {
        y = floats(B * K * S);
        a = floats(B * K * S);
        d = floats(B * K * S);
        p = floats(B * K * S / 4);
        dx = floats(B * C * S);
        share = floats(B * K * C * 9);
        mean = floats(K);
        invstd = floats(K);
        CHECK(cudaMalloc(&winner, B * K * S / 4));
    }
    void forward(const float* x, int B);
    void backward(const float* x, const float* dp, int B);
};

struct Network : Weights {  // for batches of up to B images
    cudaStream_t stream;
    Block one, two;
    float *x, *h, *logits;  // pixels, hidden layer, the ten numbers
    float *dp, *dh, *dlogits;  // the gradients of two.p, h and logits
    float *losses, *loss;  // each image's share, and their sum

    Network(size_t B, cudaStream_t stream)
        : stream(stream),
          one(1, 32, 28, B, &w[CONV1], &dw[CONV1], stream),
          two(32, 64, 14, B, &w[CONV2], &dw[CONV2], stream) {
        x = floats(B * PIXELS);
        h = floats(B * HIDDEN);
        logits = floats(B * CLASSES);
        dp = floats(B * FEATURES);
        dh = floats(B * HIDDEN);
        dlogits = floats(B * CLASSES);
        losses = floats(B);
        loss = floats(1);
    }
    void forward(const unsigned char* images, int B);
    void backward(const unsigned char* labels, int B);
    void step(const unsigned char* images, const unsigned char* labels, int B, float lr);
};
