// A ring of ranks, a block each: sums go round, then complete ones.
// Whoever sees the flag sees all that this thread wrote, or saw, before it.
__device__ void store_release(unsigned* to, unsigned value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
__device__ unsigned load_acquire(const unsigned* from) {
    unsigned value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

// Block r is rank r. numbers + r * n: its numbers, at the end the sums. arrived + r * n: where the
// rank before leaves parts, each at its place; flags[r]: how many it has left there, 0 at first.
__global__ void ring(float* numbers, float* arrived, unsigned* flags, int n) {
    int rank = blockIdx.x;
    int ranks = gridDim.x;
    int next = (rank + 1) % ranks;
    int size = n / ranks;  // of a part
    for (int step = 0; step < 2 * ranks - 1; ++step) {
        int part = (rank - step + 2 * ranks) % ranks;
        if (step > 0) {
            if (threadIdx.x == 0)
                while (load_acquire(&flags[rank]) < step)
                    __nanosleep(20);
            __syncthreads();
        }
        for (int i = part * size + threadIdx.x; i < (part + 1) * size; i += blockDim.x) {
            float sum = numbers[rank * n + i];
            if (step > 0)
                sum = arrived[rank * n + i] + (step < ranks ? sum : 0);
            numbers[rank * n + i] = sum;
            if (step < 2 * ranks - 2)
                arrived[next * n + i] = sum;
        }
        __syncthreads();
        if (threadIdx.x == 0)
            store_release(&flags[next], step + 1);
    }
}
