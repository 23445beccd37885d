// Stands before a C source that calls CUDA, which is compiled as C++ here: build.py opens
// extern "C" in its place.
struct cuda_cpu_begin_c;
