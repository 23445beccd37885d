// cuFFT's extended interface: of it cufft.h is offered. Whatever else is called (several GPUs, half
// precision, callbacks) is refused when compiling, by its name.
#pragma once
#include "cufft.h"
#include "macros_aside.inc"

typedef enum cufftXtSubFormat_t {
    CUFFT_XT_FORMAT_INPUT,
    CUFFT_XT_FORMAT_OUTPUT,
    CUFFT_XT_FORMAT_INPLACE,
    CUFFT_XT_FORMAT_INPLACE_SHUFFLED,
    CUFFT_XT_FORMAT_1D_INPUT_SHUFFLED
} cufftXtSubFormat;
typedef enum cufftXtCopyType_t {
    CUFFT_COPY_HOST_TO_DEVICE,
    CUFFT_COPY_DEVICE_TO_HOST,
    CUFFT_COPY_DEVICE_TO_DEVICE
} cufftXtCopyType;
typedef enum cufftXtCallbackType_t {
    CUFFT_CB_LD_COMPLEX,
    CUFFT_CB_LD_COMPLEX_DOUBLE,
    CUFFT_CB_LD_REAL,
    CUFFT_CB_LD_REAL_DOUBLE,
    CUFFT_CB_ST_COMPLEX,
    CUFFT_CB_ST_COMPLEX_DOUBLE,
    CUFFT_CB_ST_REAL,
    CUFFT_CB_ST_REAL_DOUBLE
} cufftXtCallbackType;
typedef cufftComplex (*cufftCallbackLoadC)(void*, size_t, void*, void*);
typedef cufftDoubleComplex (*cufftCallbackLoadZ)(void*, size_t, void*, void*);
typedef cufftReal (*cufftCallbackLoadR)(void*, size_t, void*, void*);
typedef cufftDoubleReal (*cufftCallbackLoadD)(void*, size_t, void*, void*);
typedef void (*cufftCallbackStoreC)(void*, size_t, cufftComplex, void*, void*);
typedef void (*cufftCallbackStoreZ)(void*, size_t, cufftDoubleComplex, void*, void*);
typedef void (*cufftCallbackStoreR)(void*, size_t, cufftReal, void*, void*);
typedef void (*cufftCallbackStoreD)(void*, size_t, cufftDoubleReal, void*, void*);
struct cudaXtDesc {
    int version, nGPUs, GPUs[64];
    void* data[64];
    size_t size[64];
    void* cudaXtState;
};
struct cudaLibXtDesc {
    int version;
    cudaXtDesc* descriptor;
    int library, subFormat;
    void* libDescriptor;
};

#define CUDA_CPU_MISSING(name)                                                                \
    template <class... A>                                                                     \
    __attribute__((error(                                                                     \
        "the CPU runtime has of cufftXt.h only what cufft.h has: this program needs a GPU"))) \
    cufftResult                                                                               \
    name(A...);
CUDA_CPU_MISSING(cufftXtSetGPUs)
CUDA_CPU_MISSING(cufftXtMalloc)
CUDA_CPU_MISSING(cufftXtMemcpy)
CUDA_CPU_MISSING(cufftXtFree)
CUDA_CPU_MISSING(cufftXtSetWorkArea)
CUDA_CPU_MISSING(cufftXtQueryPlan)
CUDA_CPU_MISSING(cufftXtMakePlanMany)
CUDA_CPU_MISSING(cufftXtGetSizeMany)
CUDA_CPU_MISSING(cufftXtExec)
CUDA_CPU_MISSING(cufftXtExecDescriptor)
CUDA_CPU_MISSING(cufftXtExecDescriptorC2C)
CUDA_CPU_MISSING(cufftXtExecDescriptorZ2Z)
CUDA_CPU_MISSING(cufftXtExecDescriptorR2C)
CUDA_CPU_MISSING(cufftXtExecDescriptorD2Z)
CUDA_CPU_MISSING(cufftXtExecDescriptorC2R)
CUDA_CPU_MISSING(cufftXtExecDescriptorZ2D)
CUDA_CPU_MISSING(cufftXtSetCallback)
CUDA_CPU_MISSING(cufftXtSetJITCallback)
CUDA_CPU_MISSING(cufftXtClearCallback)
#undef CUDA_CPU_MISSING
#include "macros_back.inc"
