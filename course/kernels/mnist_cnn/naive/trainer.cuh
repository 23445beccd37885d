void Network::step(const unsigned char* images, const unsigned char* labels, int B, float lr) {
    forward(images, B);
    backward(labels, B);
    for (int t = 0; t < TENSORS; ++t)
        sgd<<<LAUNCH(SIZE[t])>>>(w[t], dw[t], lr, SIZE[t]);
}

struct Trainer {
    const Options& o;
    const Digits &train, &test;
    const std::vector<int>& order;
    Network& net;
    Slot* slots;  // two
    cudaStream_t copies;
    int in_epoch;  // steps; the digits left over are not used in this epoch
    Losses losses = {};

    void send(int step) {
        size_t epoch = step / in_epoch;
        size_t batch = step % in_epoch;
        const int* chosen = &order[epoch * train.count + batch * o.batch];
        gather(slots[step % 2], train, chosen, o.batch, copies);
    }

    void run_step(int step) {
        Slot& slot = slots[step % 2];
        CHECK(cudaStreamWaitEvent(net.stream, slot.copied, 0));
        net.step(slot.images, slot.labels, o.batch, o.lr);
        auto down = cudaMemcpyDeviceToHost;
        CHECK(cudaMemcpyAsync(slot.loss, net.loss, sizeof(float), down, net.stream));
        CHECK(cudaEventRecord(slot.done, net.stream));
        losses.wait(step, slots);  // all before this one: the other slot is free now
    }
    void run();
};

void Trainer::run() {
    int epochs = order.size() / train.count;
    int steps = std::min(o.steps, epochs * in_epoch);
    std::vector<double> accuracies;
    float milliseconds = 0;
    Clock clock(net.stream);
    send(0);
    for (int step = 0; step < steps; ++step) {
        if (step % in_epoch == 0)
            clock.begin();
        run_step(step);
        bool last = step + 1 == steps;
        if (!last)
            send(step + 1);  // on its way while this step trains
        if ((step + 1) % in_epoch && !last)
            continue;

        milliseconds += clock.end();  // an epoch is over
        losses.wait(step + 1, slots);
        int room = std::min(1000, test.count);
        accuracies.push_back(accuracy(net, slots[step % 2], test, room));
        save_weights(net.w, SIZE, o.checkpoint);
        printf("step %d: loss %.4f, ", step + 1, losses.values.back());
        printf("test accuracy %.2f %%\n", 100 * accuracies.back());
        fflush(stdout);
    }
    write_result(o.result, losses.values, accuracies, milliseconds);
}
