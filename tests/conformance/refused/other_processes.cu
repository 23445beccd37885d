// expect: device memory shared between processes; line 3; mode: fast
int main() {
    cudaIpcMemHandle_t handle;
    cudaIpcGetMemHandle(&handle, nullptr);
}
