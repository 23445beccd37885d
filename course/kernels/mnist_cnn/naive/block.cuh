// kernel<<<LAUNCH(n)>>>: a thread for each of n elements, in the network's stream
#define LAUNCH(n) ((n) + 255) / 256, 256, 0, stream

void Block::forward(const float* x, int B) {
    int n = B * K * S;
    conv_forward<<<LAUNCH(n)>>>(y, x, w[0], B, C, K, side, side);
    norm_statistics<<<K, 256, 0, stream>>>(mean, invstd, y, B, K, S, 1e-5f);
    norm_forward<<<LAUNCH(n)>>>(a, y, mean, invstd, w[1], w[2], B, K, S);
    relu_forward<<<LAUNCH(n)>>>(a, a, n);
    pool_forward<<<LAUNCH(n / 4)>>>(p, winner, a, B * K, side, side);
}

// From dp, the gradient of the block's result, to those of its weights and of its input x.
void Block::backward(const float* x, const float* dp, int B) {
    int n = B * K * S;
    int weights = K * C * 9;
    float* dgamma = dw[1];
    float* dbeta = dw[2];
    pool_backward<<<LAUNCH(n)>>>(d, dp, winner, B * K, side, side);
    relu_backward<<<LAUNCH(n)>>>(d, d, a, n);
    norm_backward_sums<<<K, 256, 0, stream>>>(dgamma, dbeta, d, y, mean, invstd, B, K, S);
    norm_backward<<<LAUNCH(n)>>>(d, d, y, mean, invstd, w[1], dgamma, dbeta, B, K, S);
    int threads = B * weights / 3;
    conv_backward_weight<<<LAUNCH(threads)>>>(share, d, x, B, C, K, side, side);
    sum_over_batch<<<LAUNCH(weights)>>>(dw[0], share, B, weights);
    if (C == 1)
        return;  // nobody wants the gradient of the pixels
    int inputs = B * C * S;
    conv_backward_input<<<LAUNCH(inputs)>>>(dx, d, w[0], B, C, K, side, side);
}
