// Floats of any size: how a number becomes a code, and a code a number.
//
// A code is sign, exponent, mantissa. Exponent e > 0: (1 + mantissa / 2^bits) * 2^(e - bias);
// e = 0: mantissa / 2^bits * 2^(1 - bias), the subnormals. Formats differ in how many bits
// they have, and in what they do at the upper end (`specials`).
// Sources: IEEE 754-2019; Micikevicius et al., "FP8 formats for deep learning", 2022; Open Compute
// Project, "Microscaling formats (MX)", 2023.

// What the largest exponent means.
enum Specials {
    INFINITIES,  // infinity and NaN, as in IEEE 754: float16, bfloat16, e5m2
    ONE_NAN,  // numbers, but all ones is NaN: e4m3
    NUMBERS  // numbers only: e2m1, which is NVFP4's and MXFP4's
};

enum Rounding { NEAREST_EVEN, TOWARD_ZERO, STOCHASTIC };

struct Format {
    int exponent, mantissa;  // bits
    int specials;

    __device__ int lowest()
        const {  // exponent of the subnormals and of the smallest normal numbers
        return 2 - (1 << (exponent - 1));
    }
    __device__ unsigned sign() const {
        return 1u << (exponent + mantissa);
    }
    __device__ unsigned largest() const {  // code of the largest number
        if (specials == INFINITIES)
            return sign() - (1u << mantissa) - 1;
        return specials == ONE_NAN ? sign() - 2 : sign() - 1;
    }
    __device__ unsigned beyond() const {  // code of what is too large: infinity, NaN, or largest
        return specials == NUMBERS ? largest() : largest() + 1;
    }
    __device__ unsigned nan() const {
        return specials == NUMBERS ? largest() : sign() - 1;
    }
};

// ---- from code to number

__device__ float decode(unsigned code, Format f) {
    unsigned magnitude = code & (f.sign() - 1);
    int e = magnitude >> f.mantissa;
    int mantissa = magnitude & ((1 << f.mantissa) - 1);
    float value;
    if (f.specials == INFINITIES && magnitude > f.largest())
        value = mantissa ? nanf("") : __int_as_float(0x7f800000);
    else if (magnitude > f.largest())
        value = nanf("");
    else if (e == 0)
        value = ldexpf(mantissa, f.lowest() - f.mantissa);
    else
        value = ldexpf((1 << f.mantissa) + mantissa, f.lowest() + e - 1 - f.mantissa);
    return code & f.sign() ? -value : value;
}

// ---- from number to code

// A number from 0 to 1 that decides: a hash of the element's number and a seed. They are mixed
// before they meet: i ^ seed would give all elements the same numbers, in another order.
// Source of the constants: xxHash, XXH32.
__device__ float chance(unsigned i, unsigned seed) {
    unsigned hash = i * 0x9E3779B1u + seed * 0x85EBCA77u;
    hash = (hash ^ hash >> 15) * 0x85EBCA77u;
    hash = (hash ^ hash >> 13) * 0xC2B2AE3Du;
    return (hash >> 8) * 0x1p-24f;
}

__device__ float round_off(float steps, int rounding, float random) {
    if (rounding == NEAREST_EVEN)
        return rintf(steps);
    return floorf(rounding == STOCHASTIC ? steps + random : steps);
}

// The magnitude counts steps. Up to the smallest normal number and one octave further steps are
// equally wide, so their number is the code; in each octave above they are twice as wide. Rounding
// up to the next octave is right by itself: the carry lands in the exponent.
__device__ unsigned encode(float x, Format f, int rounding, bool saturate, float random) {
    unsigned sign = __float_as_uint(x) >> 31 ? f.sign() : 0;
    float magnitude = fabsf(x);
    if (isnan(magnitude))
        return f.nan();
    unsigned above = saturate ? f.largest() : f.beyond();
    if (isinf(magnitude))
        return sign | above;
    int octave = magnitude > 0 ? ilogbf(magnitude) : f.lowest();
    octave = max(octave, f.lowest());
    float steps = ldexpf(magnitude, f.mantissa - octave);
    unsigned rounded = (unsigned)round_off(steps, rounding, random);
    unsigned code = ((unsigned)(octave - f.lowest()) << f.mantissa) + rounded;
    return sign | (code > f.largest() ? above : code);
}

// ---- the kernels: a thread a number

__global__ void decode_all(float* x, const unsigned* codes, int n, int exponent, int mantissa,
                           int specials) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = decode(codes[i], {exponent, mantissa, specials});
}

__global__ void encode_all(unsigned* codes, const float* x, int n, int exponent, int mantissa,
                           int specials, int rounding, int saturate, unsigned seed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        codes[i] =
            encode(x[i], {exponent, mantissa, specials}, rounding, saturate, chance(i, seed));
}

// ---- blocks that share a scale

__device__ float largest_magnitude(const float* x, int count) {
    float largest = 0;
    for (int i = 0; i < count; ++i)
        largest = fmaxf(largest, fabsf(x[i]));
    return largest;
}

// MX: 32 numbers share a power of two, stored as its exponent plus 127 (e8m0): the one that brings
// the block's largest octave to the format's largest. A thread a block.
constexpr int MX_BLOCK = 32;

__global__ void encode_mx(unsigned* codes, unsigned* scales, const float* x, int blocks,
                          int exponent, int mantissa, int specials) {
    int block = blockIdx.x * blockDim.x + threadIdx.x;
    if (block >= blocks)
        return;
    Format f = {exponent, mantissa, specials};
    int highest = ilogbf(decode(f.largest(), f));
    float largest = largest_magnitude(x + block * MX_BLOCK, MX_BLOCK);
    int shared = largest > 0 ? ilogbf(largest) - highest : -127;
    shared = min(max(shared, -127), 127);
    scales[block] = shared + 127;
    for (int i = block * MX_BLOCK; i < (block + 1) * MX_BLOCK; ++i)
        codes[i] = encode(ldexpf(x[i], -shared), f, NEAREST_EVEN, true, 0);
}

// NVFP4: 16 numbers of e2m1 share a scale of e4m3, and the whole tensor one of float32.
constexpr int NVFP4_BLOCK = 16;

__global__ void encode_nvfp4(unsigned* codes, unsigned* scales, const float* x, int blocks,
                             float tensor_scale) {
    int block = blockIdx.x * blockDim.x + threadIdx.x;
    if (block >= blocks)
        return;
    const Format e2m1 = {2, 1, NUMBERS};
    const Format e4m3 = {4, 3, ONE_NAN};
    float largest = largest_magnitude(x + block * NVFP4_BLOCK, NVFP4_BLOCK);
    float wanted = largest / 6 / tensor_scale;  // 6: the largest of e2m1
    scales[block] = encode(wanted, e4m3, NEAREST_EVEN, true, 0);
    float scale = decode(scales[block], e4m3) * tensor_scale;
    for (int i = block * NVFP4_BLOCK; i < (block + 1) * NVFP4_BLOCK; ++i)
        codes[i] = encode(scale > 0 ? x[i] / scale : 0, e2m1, NEAREST_EVEN, true, 0);
}
