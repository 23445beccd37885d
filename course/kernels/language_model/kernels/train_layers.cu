// What lies between the matrix products of training, forward and backward, as plainly as it can be
// said: a thread has a row or a number. (How rows are made fast is told in the chapter Fusion.)

// x [rows, width] = the embedding's rows of these tokens. Threads: all numbers.
__global__ void embed(float* x, const float* embedding, const int* tokens, int rows, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * width)
        x[i] = embedding[(size_t)tokens[i / width] * width + i % width];
}

// Many rows may have the same token, so their gradients are added atomically.
__global__ void embed_backward(float* d_embedding, const float* dx, const int* tokens, int rows,
                               int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * width)
        atomicAdd(d_embedding + (size_t)tokens[i / width] * width + i % width, dx[i]);
}

// y = x over the root of its mean square, times weight. root: 1 / root of each row. Threads: rows.
__global__ void rms_norm(float* y, float* root, const float* x, const float* weight, int rows,
                         int width, float eps) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    x += (size_t)row * width;
    y += (size_t)row * width;
    float squares = 0;
    for (int i = 0; i < width; ++i)
        squares += x[i] * x[i];
    float r = rsqrtf(squares / width + eps);
    for (int i = 0; i < width; ++i)
        y[i] = x[i] * r * weight[i];
    root[row] = r;
}

// dx += the norm's part. Each y depends on every x of its row, through the root. Threads: rows.
__global__ void rms_norm_backward(float* dx, const float* dy, const float* x, const float* root,
                                  const float* weight, int rows, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    size_t begins = (size_t)row * width;
    float r = root[row];
    float sum = 0;
    for (int i = 0; i < width; ++i)
        sum += dy[begins + i] * weight[i] * x[begins + i];
    float through_root = sum * r * r * r / width;
    for (int i = 0; i < width; ++i)
        dx[begins + i] += dy[begins + i] * weight[i] * r - x[begins + i] * through_root;
}

// d_weight[i] += the sum over rows of dy x root. Threads: (columns, groups of 64 rows).
__global__ void rms_norm_weight_backward(float* d_weight, const float* dy, const float* x,
                                         const float* root, int rows, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= width)
        return;
    int first = blockIdx.y * 64;
    float sum = 0;
    for (int row = first; row < min(first + 64, rows); ++row)
        sum += dy[(size_t)row * width + i] * x[(size_t)row * width + i] * root[row];
    atomicAdd(d_weight + i, sum);
}

// RoPE, in place: pair (i, i + head / 2) of each of a row's first `turned` heads is turned by
// position * theta ** (-2 i / head); way: 1 forward, -1 for the gradient. Threads: all pairs.
__global__ void turn(float* qkv, int rows, int length, int turned, int all, int head, float theta,
                     float way) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    int half = head / 2;
    int i = thread % half;
    int which = thread / half % turned;
    int row = thread / (half * turned);
    if (row >= rows)
        return;
    float angle = row % length * powf(theta, -2.0f * i / head);
    float c = cosf(angle);
    float s = way * sinf(angle);
    float* pair = qkv + ((size_t)row * all + which) * head + i;
    float left = pair[0];
    float right = pair[half];
    pair[0] = left * c - right * s;
    pair[half] = right * c + left * s;
}

// SwiGLU's middle: y = silu(gate) * up, where a row of gate_up has all gates, then all ups.
__global__ void gate(float* y, const float* gate_up, int rows, int hidden) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * hidden)
        return;
    size_t place = (size_t)(i / hidden) * 2 * hidden + i % hidden;
    float g = gate_up[place];
    y[i] = g / (1 + expf(-g)) * gate_up[place + hidden];
}

// The gradients replace gate and up.
__global__ void gate_backward(float* gate_up, const float* dy, int rows, int hidden) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * hidden)
        return;
    size_t place = (size_t)(i / hidden) * 2 * hidden + i % hidden;
    float g = gate_up[place];
    float up = gate_up[place + hidden];
    float sigmoid = 1 / (1 + expf(-g));
    gate_up[place] = dy[i] * up * sigmoid * (1 + g * (1 - sigmoid));
    gate_up[place + hidden] = dy[i] * g * sigmoid;
}

// Cross-entropy: losses[row] = -log of the probability of the token that came. The logits' gradient
// (of the mean over all rows) takes the logits' place. Threads: rows.
__global__ void loss(float* losses, float* logits, const int* next, int rows, int vocabulary) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    logits += (size_t)row * vocabulary;
    float most = logits[0];
    for (int i = 1; i < vocabulary; ++i)
        most = fmaxf(most, logits[i]);
    float sum = 0;
    for (int i = 0; i < vocabulary; ++i)
        sum += expf(logits[i] - most);
    losses[row] = logf(sum) + most - logits[next[row]];
    for (int i = 0; i < vocabulary; ++i)
        logits[i] = (expf(logits[i] - most) / sum - (i == next[row])) / rows;
}

// AdamW. first, second: running means of gradient and square; fix_1, fix_2: 1 - beta ** step.
__global__ void adamw(float* weight, float* first, float* second, const float* gradient, int count,
                      float rate, float decay, float fix_1, float fix_2) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    float g = gradient[i];
    float m = first[i] = 0.9f * first[i] + 0.1f * g;
    float v = second[i] = 0.95f * second[i] + 0.05f * g * g;
    float step = (m / fix_1) / (sqrtf(v / fix_2) + 1e-8f);
    weight[i] -= rate * (step + decay * weight[i]);
}
