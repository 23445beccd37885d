// Vector types: construction, members, sizes, alignment, loads of whole vectors.
#include <cstdio>

struct Particle {
    float3 position;
    float4 colour;
};

__global__ void work(const float4* in, float4* out, int2* pairs) {
    int i = threadIdx.x;
    float4 v = in[i];
    out[i] = make_float4(v.w, v.z, v.y, v.x);
    pairs[i] = make_int2(int(v.x), i);
    Particle p;
    p.position = make_float3(1, 2, 3);
    p.colour = {0.5f, 0.5f, 0.5f, p.position.z};
    uchar4 bytes = make_uchar4(1, 2, 3, 255);
    bytes.w += 2;  // wraps
    double2 d = make_double2(0.5, 1.5);
    out[i].x += p.colour.w + bytes.w + (float)d.y;
}

int main() {
    printf("%zu %zu %zu %zu %zu\n", sizeof(float2), sizeof(float3), sizeof(float4), sizeof(double2),
           sizeof(uchar4));
    printf("%zu %zu %zu %zu %zu\n", alignof(float2), alignof(float3), alignof(float4),
           alignof(double2), alignof(uchar4));
    printf("%zu %zu %zu %zu %zu\n", sizeof(Particle), alignof(Particle), sizeof(short3),
           alignof(longlong2), sizeof(dim3));
    float4 *in, *out;
    int2* pairs;
    cudaMallocManaged(&in, 4 * sizeof(float4));
    cudaMallocManaged(&out, 4 * sizeof(float4));
    cudaMallocManaged(&pairs, 4 * sizeof(int2));
    for (int i = 0; i < 16; i++)
        reinterpret_cast<float*>(in)[i] = i;
    work<<<1, 4>>>(in, out, pairs);
    cudaDeviceSynchronize();
    for (int i = 0; i < 4; i++)
        printf("%.1f %.1f %.1f %.1f  %d %d\n", out[i].x, out[i].y, out[i].z, out[i].w, pairs[i].x,
               pairs[i].y);
    cudaFree(in);
    cudaFree(out);
    cudaFree(pairs);
}
