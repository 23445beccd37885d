// expect: cuSOLVER; line 3; mode: fast
// A library that is not offered.
#include <cusolverDn.h>
int main() {
    cusolverDnHandle_t handle;
    cusolverDnCreate(&handle);
}
