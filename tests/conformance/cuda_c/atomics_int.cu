// Every integer atomic on int and unsigned: final values, and that each returns the value before.
#include <cstdio>

__global__ void ints(int* a) {
    int t = threadIdx.x;
    atomicAdd(&a[0], t);
    atomicSub(&a[1], t);
    atomicMin(&a[2], t * 7 % 11 - 5);
    atomicMax(&a[3], t * 7 % 11 - 5);
    atomicAnd(&a[4], ~(1 << (t % 5)));
    atomicOr(&a[5], 1 << (t % 9));
    atomicXor(&a[6], 1 << (t % 20));
    int ticket = atomicAdd(&a[7], 1);
    atomicAdd(&a[8], ticket);  // every ticket is given once: 0 + 1 + ... + 255
    if (atomicCAS(&a[9], -1, t) == -1)
        atomicAdd(&a[10], 1);  // one thread wins
    if (atomicExch(&a[11], 1) == 0)
        atomicAdd(&a[12], 1);
}

__global__ void unsigneds(unsigned* a) {
    unsigned t = threadIdx.x;
    atomicInc(&a[0], 9);
    atomicDec(&a[1], 6);
    atomicMin(&a[2], t + 3000000000u);
    atomicMax(&a[3], t + 3000000000u);
    atomicAdd(&a[4], 0x80000001u);
    atomicSub(&a[5], 1u);
    atomicAnd(&a[6], ~t);
    atomicOr(&a[7], t);
    atomicXor(&a[8], t);
    atomicExch(&a[9], 77u);
    atomicCAS(&a[10], 5u, 6u);
}

int main() {
    int* a;
    unsigned* u;
    cudaMallocManaged(&a, 13 * sizeof(int));
    cudaMallocManaged(&u, 11 * sizeof(unsigned));
    int start[13] = {0, 0, 100, -100, 1023, 0, 0, 0, 0, -1, 0, 0, 0};
    for (int i = 0; i < 13; i++)
        a[i] = start[i];
    unsigned first[11] = {0, 0, 4294967295u, 0, 0, 0, 0xFFFFFFFFu, 0, 1, 0, 5};
    for (int i = 0; i < 11; i++)
        u[i] = first[i];
    ints<<<1, 256>>>(a);
    unsigneds<<<1, 256>>>(u);
    cudaDeviceSynchronize();
    for (int i = 0; i < 13; i++)
        if (i != 9)
            printf("%d ", a[i]);
    printf("%d\n", a[9] >= 0 && a[9] < 256);
    for (int i = 0; i < 11; i++)
        printf("%u ", u[i]);
    printf("\n");
    cudaFree(a);
    cudaFree(u);
}
