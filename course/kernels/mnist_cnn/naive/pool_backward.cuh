// One thread an element of dx: did it win its window?
__global__ void pool_backward(float* dx, const float* dy, const unsigned char* winner, int N, int H,
                              int W) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    int w = W / 2;
    int h = H / 2;
    if (n >= N * H * W)
        return;
    int v = n % W;
    int u = n / W % H;
    int window = (n / (W * H) * h + u / 2) * w + v / 2;
    int place = u % 2 * 2 + v % 2;  // in its window
    bool inside = u < 2 * h && v < 2 * w;  // an odd last row or column is in no window
    dx[n] = inside && winner[window] == place ? dy[window] : 0;
}
