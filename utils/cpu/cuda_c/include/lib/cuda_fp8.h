#error "8-bit floats (cuda_fp8.h) are not offered on the CPU; cuda_fp16.h and cuda_bf16.h are"
