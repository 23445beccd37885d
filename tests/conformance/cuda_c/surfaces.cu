// Surfaces: x counts bytes; outside is zero, the nearest element, or nothing; layers; then read as
// a texture.
#include <cstdio>
#include <cstring>

__global__ void fill(cudaSurfaceObject_t s) {
    surf2Dwrite(int(threadIdx.x + 10 * blockIdx.x), s, threadIdx.x * 4, blockIdx.x);
}
__global__ void edges(cudaSurfaceObject_t s, int* out) {
    int x = int(threadIdx.x) - 2;
    out[threadIdx.x] = surf2Dread<int>(s, x * 4, 1, cudaBoundaryModeZero);
    surf2Dread(&out[8 + threadIdx.x], s, x * 4, 5, cudaBoundaryModeClamp);
    surf2Dwrite(-1, s, x * 4 - 16, 0, cudaBoundaryModeZero);
}
__global__ void layers(cudaSurfaceObject_t s) {
    short2 value = make_short2(short(blockIdx.x), short(threadIdx.x));
    surf2DLayeredwrite(value, s, threadIdx.x * 4, 0, blockIdx.x);
}
__global__ void look(cudaTextureObject_t t, int* out) {
    out[threadIdx.x] = tex2D<int>(t, threadIdx.x, 2);
}
int main() {
    int* out;
    cudaMallocManaged(&out, 16 * sizeof(int));
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>();
    cudaArray_t array, layered;
    cudaMallocArray(&array, &desc, 4, 3, cudaArraySurfaceLoadStore);
    cudaResourceDesc resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t s;
    cudaCreateSurfaceObject(&s, &resource);
    fill<<<3, 4>>>(s);
    edges<<<1, 8>>>(s, out);
    cudaDeviceSynchronize();
    for (int i = 0; i < 16; ++i)
        printf("%d ", out[i]);
    int back[3][4];
    cudaMemcpy2DFromArray(back, 16, array, 0, 0, 16, 3, cudaMemcpyDeviceToHost);
    printf("\n%d %d %d %d %d\n", back[0][0], back[0][1], back[0][2], back[0][3], back[2][3]);
    cudaTextureDesc how;
    memset(&how, 0, sizeof how);
    cudaTextureObject_t t;
    cudaCreateTextureObject(&t, &resource, &how, nullptr);
    look<<<1, 4>>>(t, out);
    cudaDeviceSynchronize();
    printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
    desc = cudaCreateChannelDesc<short2>();
    unsigned flags = cudaArrayLayered | cudaArraySurfaceLoadStore;
    cudaMalloc3DArray(&layered, &desc, make_cudaExtent(3, 1, 2), flags);
    resource.res.array.array = layered;
    cudaSurfaceObject_t s2;
    cudaCreateSurfaceObject(&s2, &resource);
    layers<<<2, 3>>>(s2);
    short2 all[2][3];
    cudaMemcpy3DParms copy = {};
    copy.srcArray = layered;
    copy.dstPtr = make_cudaPitchedPtr(all, sizeof all[0], 3, 1);
    copy.extent = make_cudaExtent(3, 1, 2);
    copy.kind = cudaMemcpyDeviceToHost;
    cudaMemcpy3D(&copy);
    printf("%d %d %d %d\n", all[0][2].x, all[0][2].y, all[1][1].x, all[1][1].y);
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    cudaDestroySurfaceObject(s);
    cudaDestroySurfaceObject(s2);
    cudaDestroyTextureObject(t);
    cudaFreeArray(array);
    cudaFreeArray(layered);
    cudaFree(out);
}
