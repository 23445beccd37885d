// expect: OpenGL is not offered on the CPU; line 3; mode: fast
// Pictures that OpenGL shows.
#include <cuda_gl_interop.h>
int main() {
    return 0;
}
