// Complex numbers: x is the real part, y the imaginary one.
#pragma once

__device__ inline float2 operator+(float2 a, float2 b) {
    return {a.x + b.x, a.y + b.y};
}

__device__ inline float2 operator-(float2 a, float2 b) {
    return {a.x - b.x, a.y - b.y};
}

__device__ inline float2 operator*(float2 a, float2 b) {
    return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}

__device__ inline float2 operator*(float s, float2 a) {
    return {s * a.x, s * a.y};
}

__device__ inline float2 conjugate(float2 a) {
    return {a.x, -a.y};
}

// exp(2 pi i * turns): sincospi takes half turns, so nothing is lost by multiplying with pi.
__device__ inline float2 unit_root(float turns) {
    float2 w;
    sincospif(2 * turns, &w.y, &w.x);
    return w;
}
