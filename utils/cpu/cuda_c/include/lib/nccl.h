#error "NCCL is not offered on the CPU: this program needs GPUs"
