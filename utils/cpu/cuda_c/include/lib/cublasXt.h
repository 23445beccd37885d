#error "cuBLASXt is not offered on the CPU; cublas_v2.h is"
