#error "cuBLASLt is not offered on the CPU; cublas_v2.h is"
