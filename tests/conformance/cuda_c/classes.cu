// Classes on the device: constructors, operators, inheritance, virtual calls, static members,
// enums, unions.
#include <cstdio>

struct Vec {
    float x, y;
    __host__ __device__ Vec(float x = 0, float y = 0) : x(x), y(y) {}
    __host__ __device__ Vec operator+(const Vec& o) const {
        return Vec(x + o.x, y + o.y);
    }
    __host__ __device__ friend Vec operator*(float s, Vec v) {
        return Vec(s * v.x, s * v.y);
    }
    __device__ float dot(Vec o) const {
        return x * o.x + y * o.y;
    }
    static constexpr int dimensions = 2;
};

struct Shape {
    __device__ virtual float area() const = 0;
    __device__ float twice() const {
        return 2 * area();
    }
};
struct Square : Shape {
    float side;
    __device__ Square(float s) : side(s) {}
    __device__ float area() const override {
        return side * side;
    }
};
struct Disk : Shape {
    float r;
    __device__ Disk(float r) : r(r) {}
    __device__ float area() const override {
        return 3 * r * r;
    }
};

enum class Op { add, mul };

union Bits {
    float f;
    unsigned u;
};

__device__ float apply(Op op, float a, float b) {
    switch (op) {
        case Op::add:
            return a + b;
        case Op::mul:
            return a * b;
    }
    return -1;
}

__global__ void work(float* out) {
    Vec a(1, 2), b(3, 4);
    Vec c = a + 2.0f * b;
    out[0] = c.x, out[1] = c.y, out[2] = a.dot(b);
    Square square(3);
    Disk disk(2);
    const Shape* shapes[] = {&square, &disk};
    out[3] = 0;
    for (const Shape* s : shapes)
        out[3] += s->twice();
    out[4] = apply(Op::add, 3, 4) + 10 * apply(Op::mul, 3, 4);
    Bits bits;
    bits.f = 1.0f;
    out[5] = bits.u >> 23;
    auto lambda = [&](float t) { return t * Vec::dimensions + a.x; };
    out[6] = lambda(5);
}

int main() {
    float host[7], *device;
    cudaMalloc(&device, sizeof(host));
    work<<<1, 1>>>(device);
    cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost);
    for (float x : host)
        printf("%.0f ", x);
    printf("\n");
    cudaFree(device);
}
