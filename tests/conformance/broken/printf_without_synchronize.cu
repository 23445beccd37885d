// expect: printf-without-synchronize; line 0; mode: fast
// The program ends before the kernel's output is fetched.
#include <cstdio>
__global__ void hello() {
    printf("hello\n");
}
int main() {
    hello<<<1, 1>>>();
}
