// What each SM has counted so far, and the time in nanoseconds. One block an SM.
__global__ void tick(long long* cycles, long long* nanoseconds) {
    unsigned sm;
    long long now;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    cycles[sm] = clock64();
    nanoseconds[sm] = now;
}
