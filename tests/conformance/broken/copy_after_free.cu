// expect: use-after-free; line 8; mode: fast
// The result is copied after its memory was freed.
int main() {
    int host[16], *device;
    cudaMalloc(&device, sizeof(host));
    cudaMemset(device, 0, sizeof(host));
    cudaFree(device);
    cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost);
    return host[0];
}
