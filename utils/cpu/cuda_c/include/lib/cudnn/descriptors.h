// cuDNN on the CPU: statuses, handles and descriptors of its legacy interface.
#pragma once
#include "../cublas/product.h"  // tf32_of
#include "../cuda_bf16.h"
#include "../cuda_fp16.h"
#include "../device_task.h"
#include "../macros_aside.inc"

#define CUDNN_MAJOR 9
#define CUDNN_MINOR 0
#define CUDNN_PATCHLEVEL 0
#define CUDNN_VERSION (CUDNN_MAJOR * 10000 + CUDNN_MINOR * 100 + CUDNN_PATCHLEVEL)

typedef enum {
    CUDNN_STATUS_SUCCESS = 0,
    CUDNN_STATUS_NOT_INITIALIZED = 1001,
    CUDNN_STATUS_BAD_PARAM = 2000,
    CUDNN_STATUS_NOT_SUPPORTED = 3000,
    CUDNN_STATUS_INTERNAL_ERROR = 4000,
    CUDNN_STATUS_EXECUTION_FAILED = 5000
} cudnnStatus_t;
typedef enum {
    CUDNN_DATA_FLOAT = 0,
    CUDNN_DATA_DOUBLE = 1,
    CUDNN_DATA_HALF = 2,
    CUDNN_DATA_BFLOAT16 = 9
} cudnnDataType_t;
typedef enum { CUDNN_TENSOR_NCHW = 0, CUDNN_TENSOR_NHWC = 1 } cudnnTensorFormat_t;
typedef enum { CUDNN_CONVOLUTION = 0, CUDNN_CROSS_CORRELATION = 1 } cudnnConvolutionMode_t;
typedef enum {
    CUDNN_DEFAULT_MATH = 0,
    CUDNN_TENSOR_OP_MATH = 1,
    CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION = 2,
    CUDNN_FMA_MATH = 3
} cudnnMathType_t;
typedef enum { CUDNN_NON_DETERMINISTIC = 0, CUDNN_DETERMINISTIC = 1 } cudnnDeterminism_t;
typedef enum { CUDNN_NOT_PROPAGATE_NAN = 0, CUDNN_PROPAGATE_NAN = 1 } cudnnNanPropagation_t;
typedef enum {
    CUDNN_ACTIVATION_SIGMOID = 0,
    CUDNN_ACTIVATION_RELU = 1,
    CUDNN_ACTIVATION_TANH = 2,
    CUDNN_ACTIVATION_IDENTITY = 5
} cudnnActivationMode_t;

struct cudnnContext {
    cudaStream_t stream = nullptr;
};
struct cudnnTensorStruct {
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    int dim[4] = {};  // images, channels, rows, columns
    long stride[4] = {};
};
struct cudnnFilterStruct {
    cudnnTensorStruct weights;  // outputs, inputs of a group, rows, columns
};
struct cudnnConvolutionStruct {
    int pad[2] = {}, stride[2] = {1, 1}, dilation[2] = {1, 1};
    int groups = 1;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
    bool set = false;
};
struct cudnnActivationStruct {
    cudnnActivationMode_t mode = CUDNN_ACTIVATION_RELU;
    cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
};
typedef cudnnContext* cudnnHandle_t;
typedef cudnnTensorStruct* cudnnTensorDescriptor_t;
typedef cudnnFilterStruct* cudnnFilterDescriptor_t;
typedef cudnnConvolutionStruct* cudnnConvolutionDescriptor_t;
typedef cudnnActivationStruct* cudnnActivationDescriptor_t;

namespace cuda_cpu {
inline cudnnStatus_t bad_param(const char* call, const char* what) {
    fprintf(stderr, "%s: CUDNN_STATUS_BAD_PARAM: %s\n", call, what);
    return CUDNN_STATUS_BAD_PARAM;
}
inline cudnnStatus_t not_supported(const char* call, const char* what) {
    fprintf(stderr, "%s: CUDNN_STATUS_NOT_SUPPORTED: %s\n", call, what);
    return CUDNN_STATUS_NOT_SUPPORTED;
}
inline size_t size_of(cudnnDataType_t type) {
    if (type == CUDNN_DATA_DOUBLE)
        return 8;
    return type == CUDNN_DATA_FLOAT ? 4 : 2;
}
// Dense strides: the last dimension of the format is the fastest.
inline bool set_dense(cudnnTensorStruct* t, cudnnTensorFormat_t format, cudnnDataType_t type, int n,
                      int c, int h, int w) {
    if (n < 1 || c < 1 || h < 1 || w < 1)
        return false;
    long channels = c, rows = h, columns = w;
    *t = {type, {n, c, h, w}, {channels * rows * columns, rows * columns, columns, 1}};
    if (format == CUDNN_TENSOR_NHWC)
        *t = {type, {n, c, h, w}, {channels * rows * columns, 1, columns * channels, channels}};
    return true;
}
}  // namespace cuda_cpu

inline const char* cudnnGetErrorString(cudnnStatus_t s) {
    switch (s) {
        case CUDNN_STATUS_SUCCESS:
            return "CUDNN_STATUS_SUCCESS";
        case CUDNN_STATUS_NOT_INITIALIZED:
            return "CUDNN_STATUS_NOT_INITIALIZED";
        case CUDNN_STATUS_BAD_PARAM:
            return "CUDNN_STATUS_BAD_PARAM";
        case CUDNN_STATUS_NOT_SUPPORTED:
            return "CUDNN_STATUS_NOT_SUPPORTED";
        case CUDNN_STATUS_INTERNAL_ERROR:
            return "CUDNN_STATUS_INTERNAL_ERROR";
        case CUDNN_STATUS_EXECUTION_FAILED:
            return "CUDNN_STATUS_EXECUTION_FAILED";
    }
    return "unrecognized status";
}
inline size_t cudnnGetVersion() {
    return CUDNN_VERSION;
}
inline cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
    *handle = new cudnnContext;
    return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    if (!handle)
        return CUDNN_STATUS_NOT_INITIALIZED;
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    if (!handle)
        return CUDNN_STATUS_NOT_INITIALIZED;
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
    if (!handle)
        return CUDNN_STATUS_NOT_INITIALIZED;
    *stream = handle->stream;
    return CUDNN_STATUS_SUCCESS;
}

#define CUDA_CPU_DESCRIPTOR(name)                                                         \
    inline cudnnStatus_t cudnnCreate##name##Descriptor(cudnn##name##Descriptor_t* desc) { \
        *desc = new cudnn##name##Struct;                                                  \
        return CUDNN_STATUS_SUCCESS;                                                      \
    }                                                                                     \
    inline cudnnStatus_t cudnnDestroy##name##Descriptor(cudnn##name##Descriptor_t desc) { \
        delete desc;                                                                      \
        return CUDNN_STATUS_SUCCESS;                                                      \
    }
CUDA_CPU_DESCRIPTOR(Tensor)
CUDA_CPU_DESCRIPTOR(Filter)
CUDA_CPU_DESCRIPTOR(Convolution)
CUDA_CPU_DESCRIPTOR(Activation)
#undef CUDA_CPU_DESCRIPTOR

inline cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t desc,
                                                cudnnTensorFormat_t format, cudnnDataType_t type,
                                                int n, int c, int h, int w) {
    if (!desc || !::cuda_cpu::set_dense(desc, format, type, n, c, h, w))
        return ::cuda_cpu::bad_param("cudnnSetTensor4dDescriptor", "a size is not positive");
    return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t desc,
                                                  cudnnDataType_t type, int n, int c, int h, int w,
                                                  int step_n, int step_c, int step_h, int step_w) {
    if (!desc || n < 1 || c < 1 || h < 1 || w < 1)
        return ::cuda_cpu::bad_param("cudnnSetTensor4dDescriptorEx", "a size is not positive");
    *desc = {type, {n, c, h, w}, {step_n, step_c, step_h, step_w}};
    return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t desc, cudnnDataType_t type,
                                                int dims, const int dim[], const int stride[]) {
    if (dims != 4)
        return ::cuda_cpu::not_supported("cudnnSetTensorNdDescriptor",
                                         "only tensors of four dimensions are offered");
    return cudnnSetTensor4dDescriptorEx(desc, type, dim[0], dim[1], dim[2], dim[3], stride[0],
                                        stride[1], stride[2], stride[3]);
}
inline cudnnStatus_t cudnnGetTensor4dDescriptor(const cudnnTensorDescriptor_t desc,
                                                cudnnDataType_t* type, int* n, int* c, int* h,
                                                int* w, int* step_n, int* step_c, int* step_h,
                                                int* step_w) {
    *type = desc->type;
    int *dims[] = {n, c, h, w}, *steps[] = {step_n, step_c, step_h, step_w};
    for (int d = 0; d < 4; d++) {
        *dims[d] = desc->dim[d];
        *steps[d] = int(desc->stride[d]);
    }
    return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t desc, cudnnDataType_t type,
                                                cudnnTensorFormat_t format, int k, int c, int h,
                                                int w) {
    if (!desc || !::cuda_cpu::set_dense(&desc->weights, format, type, k, c, h, w))
        return ::cuda_cpu::bad_param("cudnnSetFilter4dDescriptor", "a size is not positive");
    return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t desc, int pad_h,
                                                     int pad_w, int stride_h, int stride_w,
                                                     int dilation_h, int dilation_w,
                                                     cudnnConvolutionMode_t mode,
                                                     cudnnDataType_t compute) {
    if (!desc || pad_h < 0 || pad_w < 0)
        return ::cuda_cpu::bad_param("cudnnSetConvolution2dDescriptor", "the padding is negative");
    if (stride_h < 1 || stride_w < 1 || dilation_h < 1 || dilation_w < 1)
        return ::cuda_cpu::bad_param("cudnnSetConvolution2dDescriptor",
                                     "a stride or a dilation is not positive");
    int groups = desc->groups;
    cudnnMathType_t math = desc->math;
    *desc = {{pad_h, pad_w},
             {stride_h, stride_w},
             {dilation_h, dilation_w},
             groups,
             mode,
             compute,
             math,
             true};
    return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t desc,
                                                 cudnnMathType_t math) {
    desc->math = math;
    return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t desc,
                                                 cudnnMathType_t* math) {
    *math = desc->math;
    return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t desc, int groups) {
    if (groups < 1)
        return ::cuda_cpu::bad_param("cudnnSetConvolutionGroupCount", "there is no group");
    desc->groups = groups;
    return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t desc,
                                                  cudnnActivationMode_t mode,
                                                  cudnnNanPropagation_t nan, double) {
    *desc = {mode, nan};
    return CUDNN_STATUS_SUCCESS;
}
#include "../macros_back.inc"
