#error "tensor cores (mma.h, wmma) are not offered on the CPU: this program needs a GPU"
