// What float keeps of a long sum. Each thread adds up its share in one of four ways; the threads'
// sums are written out, so that only the way within a thread differs.

// The float nearest to the sum so far, each time: small elements lose what a large sum cannot hold.
__global__ void sum_plainly(const float* in, long long n, float* of_thread) {
    const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
    const long long me = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    float sum = 0;
    for (long long i = me; i < n; i += threads)
        sum += in[i];
    of_thread[me] = sum;
}

// Kahan (1965): what an addition has lost is kept, and added to the next element. (nvcc keeps the
// order of additions. A compiler that may change it would see that `lost` is "always" 0.)
__global__ void sum_compensated(const float* in, long long n, float* of_thread) {
    const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
    const long long me = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    float sum = 0, lost = 0;
    for (long long i = me; i < n; i += threads) {
        const float element = in[i] + lost;
        const float larger = sum + element;
        lost = element - (larger - sum);
        sum = larger;
    }
    of_thread[me] = sum;
}

// Pairwise: sums of 2, 4, 8 ... elements, as a binary counter carries. level[k] holds the sum of
// 2^k elements where bit k of their number is set.
__global__ void sum_pairwise(const float* in, long long n, float* of_thread) {
    const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
    const long long me = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    float level[32] = {};
    unsigned added = 0;
    for (long long i = me; i < n; i += threads) {
        float carry = in[i];
        int k = 0;
        for (; added >> k & 1; k++)
            carry += level[k];
        level[k] = carry;
        added++;
    }
    float sum = 0;
    for (int k = 0; k < 32; k++)
        if (added >> k & 1)
            sum += level[k];
    of_thread[me] = sum;
}

__global__ void sum_in_double(const float* in, long long n, float* of_thread) {
    const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
    const long long me = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    double sum = 0;
    for (long long i = me; i < n; i += threads)
        sum += in[i];
    of_thread[me] = static_cast<float>(sum);
}
