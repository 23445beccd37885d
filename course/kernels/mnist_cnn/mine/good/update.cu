// Four weights a thread, 16 bytes a load; the lanes of a warp side by side.
__global__ void update(float* weights, const float* parts, int count, int splits, float rate) {
    int fours = count / 4;
    float4* w = reinterpret_cast<float4*>(weights);
    const float4* from = reinterpret_cast<const float4*>(parts);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < fours; i += gridDim.x * blockDim.x) {
        float4 gradient = from[i];
        for (int s = 1; s < splits; ++s) {
            float4 part = from[s * fours + i];
            gradient.x += part.x;
            gradient.y += part.y;
            gradient.z += part.z;
            gradient.w += part.w;
        }
        float4 now = w[i];
        now.x -= rate * gradient.x;
        now.y -= rate * gradient.y;
        now.z -= rate * gradient.z;
        now.w -= rate * gradient.w;
        w[i] = now;
    }
}
