#error "the first cuBLAS interface (cublas.h) is not offered on the CPU; cublas_v2.h is"
