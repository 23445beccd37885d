// flags: -gencode=arch=compute_90a,code=sm_90a
// Tensor copies: swizzles, what lies outside, three dimensions, im2col, stores and reductions. A
// box begins at a multiple of 16 bytes of a row, and a stored one not before the tensor: to a GPU
// anything else is an illegal instruction.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda.h>
__device__ unsigned address(const void* p) {
    return (unsigned)__cvta_generic_to_shared(p);
}
__device__ int wrong[8];
__device__ void check(int which, bool right) {
    if (!right)
        atomicAdd(&wrong[which], 1);
}
__device__ void init_and_expect(unsigned long long* b, int bytes) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(b)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(b)),
                 "r"(bytes)
                 : "memory");
}
__device__ void wait(unsigned long long* b) {
    int over = 0;
    while (!over)
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.s32 %0, 1, "
            "0, p; }"
            : "=r"(over)
            : "r"(address(b))
            : "memory");
}
#define LOAD "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"

// A matrix of 40 x 72 numbers of 2 bytes: number (y, x) is y * 72 + x + 1.
__device__ unsigned short element(int y, int x) {
    return y >= 0 && y < 40 && x >= 0 && x < 72 ? y * 72 + x + 1 : 0;
}
// A box of 16 rows of `wide` bytes. Of 16 bytes, number p of a row lies at p ^ (bits of the row).
__global__ void boxes(const __grid_constant__ CUtensorMap map, int wide, int swizzle, int y,
                      int x) {
    __shared__ __align__(1024) unsigned short box[16 * 64];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        init_and_expect(&full, 16 * wide);
        asm volatile(LOAD " [%0], [%1, {%2, %3}], [%4];" ::"r"(address(box)), "l"(&map), "r"(x),
                     "r"(y), "r"(address(&full))
                     : "memory");
    }
    __syncthreads();
    wait(&full);
    for (int i = threadIdx.x; i < 16 * wide / 2; i += 32) {
        int row = i / (wide / 2), column = i % (wide / 2);
        int bytes = i * 2;
        int moved = swizzle ? bytes ^ (bytes >> 7 & (swizzle / 16 - 1)) << 4 : bytes;
        check(swizzle ? 1 : 0, box[moved / 2] == element(y + row, x + column));
    }
}
__global__ void cubes(
    const __grid_constant__ CUtensorMap map) {  // 5 x 6 x 8 floats; boxes of 2 x 3 x 4
    __shared__ __align__(128) float box[2 * 3 * 4];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        init_and_expect(&full, sizeof box);
        asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
            "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(address(box)),
            "l"(&map), "r"(4), "r"(-1), "r"(4), "r"(address(&full))
            : "memory");
    }
    __syncthreads();
    wait(&full);
    if (threadIdx.x < 24) {
        int z = 4 + threadIdx.x / 12, y = threadIdx.x / 4 % 3 - 1, x = 4 + threadIdx.x % 4;
        float expected = z < 5 && y >= 0 && x < 8 ? z * 48 + y * 8 + x : 0;
        check(2, box[threadIdx.x] == expected);
    }
}
// Pictures of 5 x 6 pixels with 8 channels, a filter of 3 x 3 with a border of zeros: 16 pixels
// from the last one of row 3 of picture 0 on, at tap (right, down).
__global__ void pixels(const __grid_constant__ CUtensorMap map, int right, int down) {
    __shared__ __align__(128) unsigned short box[16][8];
    __shared__ unsigned long long full;
    unsigned short to_right = right, to_below = down;
    if (threadIdx.x == 0) {
        init_and_expect(&full, sizeof box);
        asm volatile(
            "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
            "[%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(address(box)),
            "l"(&map), "r"(0), "r"(4), "r"(2), "r"(0), "r"(address(&full)), "h"(to_right),
            "h"(to_below)
            : "memory");
    }
    __syncthreads();
    wait(&full);
    for (int i = threadIdx.x; i < 128; i += 32) {
        int pixel = 3 * 6 + 5 + i / 8;
        int n = pixel / 30, h = pixel % 30 / 6 - 1 + down, w = pixel % 6 - 1 + right;
        bool inside = n < 2 && h >= 0 && h < 5 && w >= 0 && w < 6;
        check(3, box[i / 8][i % 8] == (inside ? ((n * 5 + h) * 6 + w) * 8 + i % 8 + 1 : 0));
    }
}
__global__ void store(const __grid_constant__ CUtensorMap map,
                      const __grid_constant__ CUtensorMap sums) {
    __shared__ __align__(128) float box[8 * 8];
    for (int i = threadIdx.x; i < 64; i += 32)
        box[i] = i + 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile(
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
                &map),
            "r"(8), "r"(4), "r"(address(box))
            : "memory");
        asm volatile(
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], "
            "[%3];" ::"l"(&sums),
            "r"(0), "r"(6), "r"(address(box))
            : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

typedef CUresult (*Encode)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                           const cuuint64_t*, const cuuint32_t*, const cuuint32_t*,
                           CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                           CUtensorMapFloatOOBfill);
typedef CUresult (*EncodePixels)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                 const cuuint64_t*, const cuuint64_t*, const int*, const int*,
                                 cuuint32_t, cuuint32_t, const cuuint32_t*, CUtensorMapInterleave,
                                 CUtensorMapSwizzle, CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill);
template <class F>
F driver(const char* name) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result;
    cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &result);
    if (!function) {
        fprintf(stderr, "the driver has no %s\n", name);
        exit(1);
    }
    return (F)function;
}
int refused = 0;
CUtensorMap tiles(void* p, CUtensorMapDataType type, int rank, int bytes, cuuint64_t x,
                  cuuint64_t y, cuuint64_t z, cuuint32_t bx, cuuint32_t by, cuuint32_t bz,
                  int swizzle = 0) {
    CUtensorMap map;
    cuuint64_t sizes[] = {x, y, z}, strides[] = {x * bytes, x * y * bytes};
    cuuint32_t box[] = {bx, by, bz}, steps[] = {1, 1, 1};
    static Encode encode = driver<Encode>("cuTensorMapEncodeTiled");
    refused +=
        encode(&map, type, rank, p, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
               (CUtensorMapSwizzle)swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS;
    return map;
}

// Ends the program, and says why, where a call or the kernel before it failed.
void must(cudaError_t error, const char* what) {
    if (!error)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}
void finish(const char* what) {
    must(cudaGetLastError(), what);
    must(cudaDeviceSynchronize(), what);
}
template <class T>
T* on_device(const std::vector<T>& values) {
    T* p;
    must(cudaMalloc(&p, values.size() * sizeof(T)), "cudaMalloc");
    must(cudaMemcpy(p, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "copy");
    return p;
}

void all_boxes(unsigned short* matrix) {
    const int wide[] = {128, 32, 64, 128};
    const int swizzles[] = {0, 32, 64, 128};
    for (int s = 0; s < 4; ++s) {
        CUtensorMap map =
            tiles(matrix, CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, 2, 72, 40, 1, wide[s] / 2, 16, 1, s);
        boxes<<<1, 32>>>(map, wide[s], swizzles[s], 3, 8);
        boxes<<<1, 32>>>(map, wide[s], swizzles[s], 30, 40);
        boxes<<<1, 32>>>(map, wide[s], swizzles[s], -5, -8);
        finish("boxes");
    }
}
void all_pixels(unsigned short* pictures) {
    CUtensorMap map;
    cuuint64_t sizes[] = {8, 6, 5, 2}, strides[] = {16, 96, 480};
    int lower[] = {-1, -1}, upper[] = {-1, -1};
    cuuint32_t steps[] = {1, 1, 1, 1};
    refused +=
        driver<EncodePixels>("cuTensorMapEncodeIm2col")(
            &map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 4, pictures, sizes, strides, lower, upper, 8, 16,
            steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
            CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS;
    for (int tap = 0; tap < 9; ++tap) {
        pixels<<<1, 32>>>(map, tap % 3, tap / 3);
        finish("pixels");
    }
}
// What the driver refuses: too wide a row, no alignment, rows of 72 bytes, too high a box.
void refusals(unsigned short* matrix) {
    const auto type = CU_TENSOR_MAP_DATA_TYPE_UINT16;
    tiles(matrix, type, 2, 2, 72, 40, 1, 128, 16, 1, 3);
    tiles(matrix + 1, type, 2, 2, 72, 40, 1, 64, 16, 1);
    tiles(matrix, type, 2, 2, 36, 40, 1, 64, 16, 1);
    tiles(matrix, type, 2, 2, 72, 40, 1, 64, 257, 1);
}

int main() {
    std::vector<unsigned short> numbers(40 * 72);
    std::vector<float> places(5 * 6 * 8), zeros(2 * 10 * 12), results(2 * 10 * 12);
    for (int i = 0; i < 40 * 72; ++i)
        numbers[i] = i + 1;
    for (int i = 0; i < 240; ++i)
        places[i] = i;
    unsigned short* matrix = on_device(numbers);
    unsigned short* pictures = on_device(numbers);  // its first 480
    float* cube = on_device(places);
    float* out = on_device(zeros);
    const auto floats = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;

    all_boxes(matrix);
    cubes<<<1, 32>>>(tiles(cube, floats, 3, 4, 8, 6, 5, 4, 3, 2));
    finish("cubes");
    all_pixels(pictures);
    store<<<1, 32>>>(tiles(out, floats, 2, 4, 12, 10, 1, 8, 8, 1),
                     tiles(out + 120, floats, 2, 4, 12, 10, 1, 8, 8, 1));
    finish("store");

    int host[8];
    must(cudaMemcpyFromSymbol(host, wrong, sizeof host), "counts");
    must(cudaMemcpy(results.data(), out, 960, cudaMemcpyDeviceToHost), "results");
    for (int y = 0; y < 10; ++y)
        for (int x = 0; x < 12; ++x) {
            bool stored = y >= 4 && x >= 8;
            bool added = y >= 6 && x < 8;
            host[4] += results[y * 12 + x] != (stored ? (y - 4) * 8 + x - 8 + 1 : 0);
            host[5] += results[120 + y * 12 + x] != (added ? (y - 6) * 8 + x + 1 : 0);
        }
    const char* names[] = {"plain", "swizzled", "cubes", "pixels", "stores", "sums"};
    for (int i = 0; i < 6; ++i)
        printf("%s: %d wrong\n", names[i], host[i]);
    printf("%d refused\n", refused);
    refusals(matrix);
    printf("%d refused\n", refused);
    cudaFree(matrix);
    cudaFree(pictures);
    cudaFree(cube);
    cudaFree(out);
}
