// flags: -arch=sm_90
// A kernel that may begin before the one in front of it has ended waits for what that one wrote.
#include <cstdio>

__global__ void first(int* numbers) {
    numbers[threadIdx.x] = threadIdx.x;
    cudaTriggerProgrammaticLaunchCompletion();
}

__global__ void second(int* numbers) {
    cudaGridDependencySynchronize();
    numbers[threadIdx.x] *= 2;
}

int main() {
    int* numbers;
    cudaMallocManaged(&numbers, 32 * sizeof(int));
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    first<<<1, 32, 0, stream>>>(numbers);
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = 1;
    config.blockDim = 32;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, second, numbers);
    printf("%s", cudaGetErrorName(cudaStreamSynchronize(stream)));
    printf(" %d %d\n", numbers[1], numbers[31]);
    cudaStreamDestroy(stream);
    cudaFree(numbers);
}
