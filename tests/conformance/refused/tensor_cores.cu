// expect: wmma; line 3; mode: fast
// Tensor cores are refused when the program is built.
#include <mma.h>
using namespace nvcuda;
__global__ void multiply(const half* a) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> f;
    wmma::load_matrix_sync(f, a, 16);
}
int main() {}
