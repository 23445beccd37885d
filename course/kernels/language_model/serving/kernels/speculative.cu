// nvcc -arch=sm_80 -DVOCABULARY=1024 -DAHEAD=4 -cubin speculative.cu
// A turn of speculative decoding of one text: before the model's step a draft, after it what is
// accepted. Each is one block, whose thread t has the tokens t * OWN to t * OWN + OWN - 1 of a
// vocabulary of THREADS * OWN tokens. Random numbers come from a list, AHEAD + AHEAD + 1 per turn.
constexpr int THREADS = 256;
constexpr int OWN = VOCABULARY / THREADS;
constexpr int WARPS = THREADS / 32;
constexpr int PER_TURN = 2 * AHEAD + 1;
static_assert(OWN * THREADS == VOCABULARY, "a vocabulary of whole shares");

__device__ float sum_before(float own, float* whole) {
    __shared__ float of_warp[WARPS];
    int lane = threadIdx.x % 32;
    float sum = own;
    for (int step = 1; step < 32; step *= 2) {
        float left = __shfl_up_sync(~0u, sum, step);
        if (lane >= step)
            sum += left;
    }
    if (lane == 31)
        of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    float before = 0, total = 0;
    for (int warp = 0; warp < WARPS; ++warp) {
        if (warp < threadIdx.x / 32)
            before += of_warp[warp];
        total += of_warp[warp];
    }
    __syncthreads();  // of_warp may be written again
    *whole = total;
    return before + sum - own;
}

// The token at which the sum of weights exceeds chance times the whole. The same for all threads.
__device__ int drawn(const float (&weights)[OWN], float chance) {
    __shared__ int token;
    float own = 0;
    for (int i = 0; i < OWN; ++i)
        own += weights[i];
    float whole;
    float before = sum_before(own, &whole);
    if (threadIdx.x == 0)
        token = VOCABULARY;
    __syncthreads();
    float aim = chance * whole;
    int found = VOCABULARY;
    for (int i = OWN - 1; i >= 0; --i) {
        float sum = before;
        for (int j = 0; j <= i; ++j)
            sum += weights[j];
        if (sum > aim && weights[i] > 0)
            found = threadIdx.x * OWN + i;
    }
    atomicMin(&token, found);
    __syncthreads();
    int result = min(token, VOCABULARY - 1);  // rounding may leave the last sum short of the aim
    __syncthreads();
    return result;
}

// The model's probabilities of this thread's tokens: softmax(logits / temperature).
__device__ void probabilities(float (&p)[OWN], const float* logits, float temperature) {
    __shared__ float of_warp[WARPS];
    float most = -INFINITY;
    for (int i = 0; i < OWN; ++i) {
        p[i] = logits[threadIdx.x * OWN + i] / temperature;
        most = fmaxf(most, p[i]);
    }
    for (int other = 16; other > 0; other /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, other));
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = most;
    __syncthreads();
    for (int warp = 0; warp < WARPS; ++warp)
        most = fmaxf(most, of_warp[warp]);
    float own = 0;
    for (int i = 0; i < OWN; ++i)
        own += p[i] = expf(p[i] - most);
    float whole;
    sum_before(own, &whole);
    for (int i = 0; i < OWN; ++i)
        p[i] /= whole;
}

// Fills the rows of the model's step: the text's last token, and AHEAD drafted behind it.
// rows[last but one, last]: which row of `draft` says what comes next. drafted: what was drawn.
__global__ void draft_ahead(int* token, int* position, int* drafted, const int* text,
                            const int* length, const int* turn, const int* rows, const float* draft,
                            const float* chances) {
    int end = *length;
    int before = text[end - 2];
    int last = text[end - 1];
    if (threadIdx.x == 0) {
        token[0] = last;
        position[0] = end - 1;
    }
    for (int i = 0; i < AHEAD; ++i) {
        const float* q = draft + (size_t)rows[before * VOCABULARY + last] * VOCABULARY;
        float own[OWN];
        for (int j = 0; j < OWN; ++j)
            own[j] = q[threadIdx.x * OWN + j];
        before = last;
        last = drawn(own, chances[*turn * PER_TURN + i]);
        if (threadIdx.x == 0) {
            token[i + 1] = drafted[i] = last;
            position[i + 1] = end + i;
        }
    }
}

// Appends what is accepted, and the token after it. logits: of the step's rows. counts[turn]: how
// many tokens came. Launched after the step, with what draft_ahead left.
__global__ void accept(int* text, int* length, int* turn, int* counts, const int* drafted,
                       const float* logits, const int* rows, const float* draft,
                       const float* chances, float temperature) {
    int end = *length;
    int number = *turn;
    const float* chance = chances + number * PER_TURN + AHEAD;
    int before = text[end - 2];
    int last = text[end - 1];
    __shared__ float share;
    int count = 0;
    while (true) {
        float p[OWN];
        probabilities(p, logits + (size_t)count * VOCABULARY, temperature);
        if (count == AHEAD) {
            last = drawn(p, chance[AHEAD]);
            break;
        }
        int token = drafted[count];
        const float* q = draft + (size_t)rows[before * VOCABULARY + last] * VOCABULARY;
        if (threadIdx.x == token / OWN)
            share = p[token % OWN] / q[token];
        __syncthreads();
        bool accepted = chance[count] < share;
        __syncthreads();  // share may be written again
        if (!accepted) {
            for (int i = 0; i < OWN; ++i)
                p[i] = fmaxf(p[i] - q[threadIdx.x * OWN + i], 0.0f);
            last = drawn(p, chance[AHEAD]);
            break;
        }
        if (threadIdx.x == 0)
            text[end + count] = token;
        before = last;
        last = token;
        ++count;
    }
    __syncthreads();  // everyone has read what is written now
    if (threadIdx.x == 0) {
        text[end + count] = last;
        *length = end + count + 1;
        counts[number] = count + 1;
        *turn = number + 1;
    }
}
