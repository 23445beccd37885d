void Network::backward(const unsigned char* labels, int B) {
    int hidden = B * HIDDEN;
    int features = B * FEATURES;
    cross_entropy<<<LAUNCH(B)>>>(losses, dlogits, logits, labels, B);
    sum_over_batch<<<LAUNCH(1)>>>(loss, losses, B, 1);

    linear_backward_weight<<<LAUNCH(SIZE[FC2])>>>(dw[FC2], dlogits, h, B, HIDDEN, CLASSES);
    sum_over_batch<<<LAUNCH(CLASSES)>>>(dw[BIAS2], dlogits, B, CLASSES);
    linear_backward_input<<<LAUNCH(hidden)>>>(dh, dlogits, w[FC2], B, HIDDEN, CLASSES);
    relu_backward<<<LAUNCH(hidden)>>>(dh, dh, h, hidden);

    linear_backward_weight<<<LAUNCH(SIZE[FC1])>>>(dw[FC1], dh, two.p, B, FEATURES, HIDDEN);
    sum_over_batch<<<LAUNCH(HIDDEN)>>>(dw[BIAS1], dh, B, HIDDEN);
    linear_backward_input<<<LAUNCH(features)>>>(dp, dh, w[FC1], B, FEATURES, HIDDEN);

    two.backward(one.p, dp, B);
    one.backward(x, two.dx, B);
    CHECK(cudaGetLastError());
}
