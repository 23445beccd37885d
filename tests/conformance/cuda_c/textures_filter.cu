// Linear filtering in one, two and three dimensions. All weights are multiples of 1/256, which the
// texture unit's 9 bits hold.
#include <cstdio>
#include <cstring>

__global__ void line(cudaTextureObject_t t, float* out) {
    out[threadIdx.x] = tex1D<float>(t, threadIdx.x * 0.125f);
}
__global__ void plane(cudaTextureObject_t t, float* out) {
    out[threadIdx.x] = tex2D<float>(t, 0.5f + threadIdx.x * 0.25f, 1.25f);
}
__global__ void space(cudaTextureObject_t t, float* out) {
    out[threadIdx.x] = tex3D<float>(t, 0.5f + threadIdx.x * 0.25f, 0.75f, 1.0f);
}
cudaTextureObject_t linear(cudaArray_t array) {
    cudaResourceDesc resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc how;
    memset(&how, 0, sizeof how);
    for (auto& mode : how.addressMode)
        mode = cudaAddressModeClamp;
    how.filterMode = cudaFilterModeLinear;
    cudaTextureObject_t t;
    cudaCreateTextureObject(&t, &resource, &how, nullptr);
    return t;
}
void show(const float* out, int n) {
    cudaDeviceSynchronize();
    for (int i = 0; i < n; ++i)
        printf("%g ", out[i]);
    printf("\n");
}
int main() {
    float values[16];
    for (int i = 0; i < 16; ++i)
        values[i] = float(i * i);
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    cudaExtent extents[] = {{4, 0, 0}, {4, 3, 0}, {2, 2, 2}};
    float* out;
    cudaMallocManaged(&out, 36 * sizeof(float));
    for (cudaExtent e : extents) {
        cudaArray_t array;
        cudaMalloc3DArray(&array, &desc, e);
        cudaMemcpy3DParms copy = {};
        size_t rows = e.height ? e.height : 1, slices = e.depth ? e.depth : 1;
        copy.srcPtr = make_cudaPitchedPtr(values, e.width * sizeof(float), e.width, rows);
        copy.dstArray = array;
        copy.extent = make_cudaExtent(e.width, rows, slices);
        copy.kind = cudaMemcpyHostToDevice;
        cudaMemcpy3D(&copy);
        cudaTextureObject_t t = linear(array);
        if (e.depth)
            space<<<1, 8>>>(t, out);
        else if (e.height)
            plane<<<1, 16>>>(t, out);
        else
            line<<<1, 36>>>(t, out);
        show(out, e.depth ? 8 : e.height ? 16 : 36);
        cudaDestroyTextureObject(t);
        cudaFreeArray(array);
    }
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    cudaFree(out);
}
