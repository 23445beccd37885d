// A tensor map as this runtime keeps it in the 128 bytes of a CUtensorMap; tensor_map.py writes the
// same. Source of the rules: CUDA Driver API, "Tensor Map Object Management".
#pragma once

namespace cuda_cpu {
struct TensorMapBits {
    static const unsigned known = 0x50414d54;  // "TMAP"
    unsigned mark;
    unsigned char type, rank, swizzle, interleave, nan_fill, pixels, reserved[2];
    unsigned elements;  // im2col: channels of a pixel
    unsigned long long address;
    unsigned long long strides[4];  // bytes, of the dimensions from the second on
    unsigned sizes[5];  // innermost first; 0 means 2^32
    unsigned short box[5];  // im2col: box[1] pixels
    unsigned char steps[5], reserved_too;
    short lower[3], upper[3];
};
static_assert(sizeof(TensorMapBits) <= 128, "a CUtensorMap has 128 bytes");

// Bytes of an element by its number in CUtensorMapDataType; 0: not offered.
inline unsigned tensor_element_bytes(unsigned type) {
    const unsigned char bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return type < sizeof bytes ? bytes[type] : 0;
}
// Whether the copy engine can describe this; what the driver refuses too.
inline bool tensor_map_valid(const TensorMapBits& m) {
    unsigned bytes = tensor_element_bytes(m.type);
    if (!bytes || m.rank < (m.pixels ? 3 : 1) || m.rank > 5 || !m.address || m.address % 16)
        return false;
    if (m.interleave || m.swizzle > 3 || (m.pixels && !m.elements))
        return false;
    unsigned row = bytes * (m.pixels ? m.elements : m.box[0]);
    if (row % 16 || (m.swizzle && row > 16u << m.swizzle))
        return false;
    for (unsigned i = 0; i < m.rank; ++i) {
        bool boxed = !m.pixels || i == 1;
        if (boxed && (m.box[i] == 0 || m.box[i] > (m.pixels ? 1024 : 256)))
            return false;
        if (m.steps[i] < 1 || m.steps[i] > 8)
            return false;
        if (i && (m.strides[i - 1] % 16 || m.strides[i - 1] >> 40))
            return false;
    }
    return true;
}
}  // namespace cuda_cpu
