#error "asynchronous copies to shared memory (cuda_pipeline.h) are not offered on the CPU"
