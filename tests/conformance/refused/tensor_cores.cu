// expect: 4-bit and 1-bit; line 7; mode: fast
// Tensor cores have 4-bit whole numbers as an experiment only; what the CPU runtime lacks is
// refused when the program is built.
#include <mma.h>
__global__ void multiply() {
    nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 8, 8, 32,
                           nvcuda::wmma::experimental::precision::s4, nvcuda::wmma::row_major>
        f;
}
int main() {}
