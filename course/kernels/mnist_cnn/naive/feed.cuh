struct Slot {
    unsigned char *host_images, *host_labels;  // pinned
    unsigned char *images, *labels;  // on the GPU
    float* loss;  // pinned: of the step that used this slot
    cudaEvent_t copied, done;

    Slot(size_t B) {
        CHECK(cudaMallocHost(&host_images, B * PIXELS));
        CHECK(cudaMallocHost(&host_labels, B));
        CHECK(cudaMallocHost(&loss, sizeof(float)));
        CHECK(cudaMalloc(&images, B * PIXELS));
        CHECK(cudaMalloc(&labels, B));
        CHECK(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
        CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    }

    void send(const unsigned char* pixels, const unsigned char* answers, int B,
              cudaStream_t stream) {
        auto up = cudaMemcpyHostToDevice;
        CHECK(cudaMemcpyAsync(images, pixels, B * PIXELS, up, stream));
        CHECK(cudaMemcpyAsync(labels, answers, B, up, stream));
    }
};

// The digits whose numbers are in `chosen`, into a slot.
void gather(Slot& slot, const Digits& digits, const int* chosen, int B, cudaStream_t copies) {
    for (int b = 0; b < B; ++b) {
        size_t digit = chosen[b];
        const unsigned char* from = digits.images + PIXELS * digit;
        unsigned char* to = slot.host_images + size_t(PIXELS) * b;
        std::copy_n(from, PIXELS, to);
        slot.host_labels[b] = digits.labels[digit];
    }
    slot.send(slot.host_images, slot.host_labels, B, copies);
    CHECK(cudaEventRecord(slot.copied, copies));
}

// Share of the test digits that the network reads right. Batch norm takes its statistics from each
// B of them.
double accuracy(Network& net, Slot& slot, const Digits& test, int B) {
    int* right;
    int count = 0;
    cudaStream_t stream = net.stream;
    CHECK(cudaMalloc(&right, sizeof(int)));
    CHECK(cudaMemset(right, 0, sizeof(int)));
    for (int start = 0; start < test.count; start += B) {
        int n = std::min(B, test.count - start);
        const unsigned char* pixels = test.images + PIXELS * start;
        slot.send(pixels, test.labels + start, n, stream);
        net.forward(slot.images, n);
        count_right<<<LAUNCH(n)>>>(right, net.logits, slot.labels, n);
    }
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(&count, right, sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(right));
    return double(count) / test.count;
}

struct Clock {  // milliseconds on the GPU
    cudaStream_t stream;
    cudaEvent_t from, to;

    Clock(cudaStream_t stream) : stream(stream) {
        CHECK(cudaEventCreate(&from));
        CHECK(cudaEventCreate(&to));
    }
    void begin() {
        CHECK(cudaEventRecord(from, stream));
    }
    float end() {
        float milliseconds;
        CHECK(cudaEventRecord(to, stream));
        CHECK(cudaEventSynchronize(to));
        CHECK(cudaEventElapsedTime(&milliseconds, from, to));
        return milliseconds;
    }
};
