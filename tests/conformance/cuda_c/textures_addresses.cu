// A texture of one row: what lies outside, by address mode, for both kinds of coordinates.
#include <cstdio>
#include <cstring>

__global__ void read(cudaTextureObject_t t, float scale, float* out) {
    out[threadIdx.x] = tex1D<float>(t, (float(threadIdx.x) - 6 + 0.5f) * scale);
}
int main() {
    const int n = 4;
    float row[n] = {10, 20, 30, 40};
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    cudaMallocArray(&array, &desc, n);
    cudaMemcpy2DToArray(array, 0, 0, row, sizeof row, sizeof row, 1, cudaMemcpyHostToDevice);
    cudaResourceDesc resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    float* out;
    cudaMallocManaged(&out, 16 * sizeof(float));
    for (int normalized = 0; normalized < 2; ++normalized) {
        for (int mode = 0; mode < 4; ++mode) {
            cudaTextureDesc how;
            memset(&how, 0, sizeof how);
            how.addressMode[0] = cudaTextureAddressMode(mode);
            how.normalizedCoords = normalized;
            how.borderColor[0] = -5;
            cudaTextureObject_t t;
            cudaCreateTextureObject(&t, &resource, &how, nullptr);
            read<<<1, 16>>>(t, normalized ? 1.0f / n : 1.0f, out);
            cudaDeviceSynchronize();
            for (int i = 0; i < 16; ++i)
                printf("%g ", out[i]);
            printf("\n");
            cudaDestroyTextureObject(t);
        }
    }
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    cudaFreeArray(array);
    cudaFree(out);
}
