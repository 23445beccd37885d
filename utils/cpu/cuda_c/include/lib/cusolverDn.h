#error "cuSOLVER is not offered on the CPU: this program needs a GPU"
