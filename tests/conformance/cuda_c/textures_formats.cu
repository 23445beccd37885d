// Textures of integers: as they are, as fractions of one, over linear and pitched memory.
#include <cstdio>
#include <cstring>

template <class T>
__global__ void as_they_are(cudaTextureObject_t t, int* out) {
    T value = tex2D<T>(t, threadIdx.x, blockIdx.x);
    out[blockIdx.x * blockDim.x + threadIdx.x] = value.x * 1000 + value.y;
}
template <class T>
__global__ void as_fractions(cudaTextureObject_t t, float* out) {
    T value = tex2D<T>(t, threadIdx.x, blockIdx.x);
    out[blockIdx.x * blockDim.x + threadIdx.x] = value.x + 10 * value.y;
}
__global__ void fetch(cudaTextureObject_t t, int* out) {
    out[threadIdx.x] = tex1Dfetch<int>(t, int(threadIdx.x) - 1);
}
template <class T>
cudaTextureObject_t over_pitched(T* memory, size_t pitch, int width, int height, bool fractions) {
    cudaResourceDesc resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = memory;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<T>();
    resource.res.pitch2D.width = width;
    resource.res.pitch2D.height = height;
    resource.res.pitch2D.pitchInBytes = pitch;
    cudaTextureDesc how;
    memset(&how, 0, sizeof how);
    how.readMode = fractions ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    cudaTextureObject_t t;
    cudaCreateTextureObject(&t, &resource, &how, nullptr);
    return t;
}
template <class T, class F>
void show(const T (&values)[2][3]) {
    T* memory;
    size_t pitch;
    cudaMallocPitch(&memory, &pitch, sizeof values[0], 2);
    cudaMemcpy2D(memory, pitch, values, sizeof values[0], sizeof values[0], 2,
                 cudaMemcpyHostToDevice);
    float* out;
    cudaMallocManaged(&out, 6 * sizeof(float));
    auto whole = over_pitched(memory, pitch, 3, 2, false);
    as_they_are<T><<<2, 3>>>(whole, reinterpret_cast<int*>(out));
    cudaDeviceSynchronize();
    for (int i = 0; i < 6; ++i)
        printf("%d ", reinterpret_cast<int*>(out)[i]);
    auto fractions = over_pitched(memory, pitch, 3, 2, true);
    as_fractions<F><<<2, 3>>>(fractions, out);
    cudaDeviceSynchronize();
    for (int i = 0; i < 6; ++i)
        printf("%.5f ", out[i]);
    printf("\n");
    cudaDestroyTextureObject(whole);
    cudaDestroyTextureObject(fractions);
    cudaFree(memory);
    cudaFree(out);
}
int main() {
    uchar2 bytes[2][3] = {{{0, 255}, {1, 2}, {128, 127}}, {{51, 102}, {255, 0}, {3, 4}}};
    char2 small[2][3] = {{{0, 127}, {-1, 2}, {-128, 64}}, {{51, -102}, {-127, 0}, {3, 4}}};
    ushort2 words[2][3] = {{{0, 65535}, {1, 2}, {32768, 7}}, {{13107, 1}, {9, 0}, {3, 4}}};
    show<uchar2, float2>(bytes);
    show<char2, float2>(small);
    show<ushort2, float2>(words);
    int* squares;
    cudaMallocManaged(&squares, 20 * sizeof(int));
    for (int i = 0; i < 10; ++i)
        squares[i] = i * i + 1;
    cudaResourceDesc resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = squares;
    resource.res.linear.desc = cudaCreateChannelDesc<int>();
    resource.res.linear.sizeInBytes = 8 * sizeof(int);
    cudaTextureDesc how;
    memset(&how, 0, sizeof how);
    cudaTextureObject_t t;
    cudaCreateTextureObject(&t, &resource, &how, nullptr);
    fetch<<<1, 10>>>(t, squares + 10);
    cudaDeviceSynchronize();
    for (int i = 0; i < 10; ++i)
        printf("%d ", squares[10 + i]);
    how.filterMode = cudaFilterModeLinear;
    cudaTextureObject_t none;
    cudaError_t refused = cudaCreateTextureObject(&none, &resource, &how, nullptr);
    printf("%d\n%s\n", refused != cudaSuccess, cudaGetErrorName(cudaDeviceSynchronize()));
    cudaDestroyTextureObject(t);
    cudaFree(squares);
}
