// What threads agree on: a sum or a maximum, and what it is of nothing.
#pragma once

__device__ inline float infinity() {
    return __uint_as_float(0x7f800000);
}

struct Add {
    __device__ static float neutral() {
        return 0;
    }
    __device__ static float combine(float a, float b) {
        return a + b;
    }
};

struct Max {
    __device__ static float neutral() {
        return -infinity();
    }
    __device__ static float combine(float a, float b) {
        return fmaxf(a, b);
    }
};
