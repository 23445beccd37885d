struct Losses {  // of the steps that are done
    std::vector<float> values;

    // Until so many steps are done, and look at each one's loss.
    void wait(size_t steps, Slot* slots) {
        while (values.size() < steps) {
            Slot& slot = slots[values.size() % 2];
            CHECK(cudaEventSynchronize(slot.done));
            float loss = *slot.loss;
            values.push_back(loss);
            if (!std::isfinite(loss))
                fail("step %zu: the loss is %g. Stopped; no checkpoint was written. A smaller lr?",
                     values.size(), loss);
        }
    }
};
