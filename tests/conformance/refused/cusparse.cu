// expect: cuSPARSE; line 3; mode: fast
// A library that is not offered.
#include <cusparse.h>
int main() {
    cusparseHandle_t handle;
    cusparseCreate(&handle);
}
