// The rival: CUB's radix sort of keys, called with memory that the caller has made before.
#include <cub/device/device_radix_sort.cuh>

// With temporary = nullptr only *bytes is set. Gives CUDA's error code.
extern "C" int cub_sort_keys(void* temporary, size_t* bytes, const unsigned* in, unsigned* out,
                             int n) {
    return cub::DeviceRadixSort::SortKeys(temporary, *bytes, in, out, n);
}
