void Network::forward(const unsigned char* images, int B) {
    int pixels = B * PIXELS;
    int hidden = B * HIDDEN;
    int ten = B * CLASSES;
    scale_pixels<<<LAUNCH(pixels)>>>(x, images, pixels);
    one.forward(x, B);
    two.forward(one.p, B);
    linear_forward<<<LAUNCH(hidden)>>>(h, two.p, w[FC1], w[BIAS1], B, FEATURES, HIDDEN);
    relu_forward<<<LAUNCH(hidden)>>>(h, h, hidden);
    linear_forward<<<LAUNCH(ten)>>>(logits, h, w[FC2], w[BIAS2], B, HIDDEN, CLASSES);
    CHECK(cudaGetLastError());
}
