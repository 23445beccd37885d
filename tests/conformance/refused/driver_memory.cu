// expect: the CPU runtime has no memory, modules and contexts of the driver API; line 7; mode: fast
// The driver API's own names of memory: only its questions about devices are offered.
#include <cuda.h>
int main() {
    int count = 0;
    cuDeviceGetCount(&count);
    CUdeviceptr start = 0;
    size_t bytes = 0;
    cuMemGetAddressRange(&start, &bytes, start);
}
