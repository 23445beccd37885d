#error "cufftXt is not offered on the CPU; cufft.h is"
