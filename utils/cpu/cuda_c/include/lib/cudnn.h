// cuDNN's legacy interface on the CPU: tensor, filter, convolution and activation descriptors, the
// forward convolution with its algorithms and workspaces, bias, activations, softmax.
//
// Which algorithm is asked for decides about workspace and status alone: all are computed as plain
// sums, floats rounded to TF32 first unless the math type is CUDNN_FMA_MATH, as a GPU's may be. The
// graph interface (cudnnBackend...), gradients and what else is missing is not declared and so does
// not compile.
#pragma once
#include "cudnn/pointwise.h"
#include "macros_aside.inc"

inline cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(const cudnnConvolutionDescriptor_t conv,
                                                           const cudnnTensorDescriptor_t x,
                                                           const cudnnFilterDescriptor_t w, int* n,
                                                           int* c, int* height, int* width) {
    ::cuda_cpu::ConvolutionProblem p{"cudnnGetConvolution2dForwardOutputDim", x, w, conv};
    if (cudnnStatus_t wrong = p.check())
        return wrong;
    *n = x->dim[0];
    *c = w->weights.dim[0];
    *height = p.extent(0);
    *width = p.extent(1);
    return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t, int* count) {
    *count = CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
    return CUDNN_STATUS_SUCCESS;
}
// Algorithms that take the problem, in an order in which a GPU would often prefer them.
inline cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t h, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t y, int requested,
    int* returned, cudnnConvolutionFwdAlgoPerf_t* results) {
    if (!h)
        return CUDNN_STATUS_NOT_INITIALIZED;
    ::cuda_cpu::ConvolutionProblem p{"cudnnGetConvolutionForwardAlgorithm_v7", x, w, conv};
    if (cudnnStatus_t wrong = p.check())
        return wrong;
    if (cudnnStatus_t wrong = p.check_output(y))
        return wrong;
    if (requested < 1 || !returned || !results)
        return ::cuda_cpu::bad_param(p.call, "no algorithm is requested");
    *returned = 0;
    for (int algo : {1, 6, 0, 7, 2, 5, 4}) {
        auto name = cudnnConvolutionFwdAlgo_t(algo);
        if (p.supports(name) && *returned < requested)
            results[(*returned)++] = {
                name, CUDNN_STATUS_SUCCESS, -1, p.workspace(name), CUDNN_DETERMINISTIC, conv->math,
                {}};
    }
    return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t h, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t y,
    cudnnConvolutionFwdAlgo_t algo, size_t* bytes) {
    if (!h)
        return CUDNN_STATUS_NOT_INITIALIZED;
    ::cuda_cpu::ConvolutionProblem p{"cudnnGetConvolutionForwardWorkspaceSize", x, w, conv};
    if (cudnnStatus_t wrong = p.check())
        return wrong;
    if (cudnnStatus_t wrong = p.check_output(y))
        return wrong;
    if (!p.supports(algo))
        return ::cuda_cpu::not_supported(p.call, "this algorithm does not take this problem");
    *bytes = p.workspace(algo);
    return CUDNN_STATUS_SUCCESS;
}

namespace cuda_cpu {
// What both forms of the convolution check before they run.
inline cudnnStatus_t check_run(cudnnHandle_t h, const ConvolutionProblem& p,
                               const cudnnTensorStruct* y, cudnnConvolutionFwdAlgo_t algo,
                               const void* workspace, size_t bytes) {
    if (!h)
        return CUDNN_STATUS_NOT_INITIALIZED;
    if (cudnnStatus_t wrong = p.check())
        return wrong;
    if (cudnnStatus_t wrong = p.check_output(y))
        return wrong;
    if (!p.supports(algo))
        return not_supported(p.call, "this algorithm does not take this problem");
    if (p.workspace(algo) > (workspace ? bytes : 0))
        return bad_param(p.call,
                         "the workspace is smaller than "
                         "cudnnGetConvolutionForwardWorkspaceSize says");
    return CUDNN_STATUS_SUCCESS;
}
}  // namespace cuda_cpu

// y = alpha * convolution(x, w) + beta * y
inline cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t h, const void* alpha,
                                             const cudnnTensorDescriptor_t desc_x, const void* x,
                                             const cudnnFilterDescriptor_t desc_w, const void* w,
                                             const cudnnConvolutionDescriptor_t conv,
                                             cudnnConvolutionFwdAlgo_t algo, void* workspace,
                                             size_t bytes, const void* beta,
                                             const cudnnTensorDescriptor_t desc_y, void* y) {
    ::cuda_cpu::ConvolutionProblem p{"cudnnConvolutionForward", desc_x, desc_w, conv};
    if (cudnnStatus_t wrong = ::cuda_cpu::check_run(h, p, desc_y, algo, workspace, bytes))
        return wrong;
    if (!alpha || !beta || !x || !w || !y)
        return ::cuda_cpu::bad_param(p.call, "a pointer is null");
    double scale = ::cuda_cpu::scalar(desc_x->type, alpha);
    double keep = ::cuda_cpu::scalar(desc_x->type, beta);
    return ::cuda_cpu::with_type(desc_x->type, [&](auto* type) {
        using T = std::remove_pointer_t<decltype(type)>;
        return ::cuda_cpu::convolve(h->stream, p, scale, (const T*)x, (const T*)w, keep, *desc_y,
                                    (T*)y, ::cuda_cpu::NoFinish());
    });
}
// y = activation(alpha * convolution(x, w) + beta * z + bias), in one call.
inline cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t h, const void* alpha, const cudnnTensorDescriptor_t desc_x, const void* x,
    const cudnnFilterDescriptor_t desc_w, const void* w, const cudnnConvolutionDescriptor_t conv,
    cudnnConvolutionFwdAlgo_t algo, void* workspace, size_t bytes, const void* beta,
    const cudnnTensorDescriptor_t desc_z, const void* z, const cudnnTensorDescriptor_t desc_bias,
    const void* bias, const cudnnActivationDescriptor_t activation,
    const cudnnTensorDescriptor_t desc_y, void* y) {
    ::cuda_cpu::ConvolutionProblem p{"cudnnConvolutionBiasActivationForward", desc_x, desc_w, conv};
    if (cudnnStatus_t wrong = ::cuda_cpu::check_run(h, p, desc_y, algo, workspace, bytes))
        return wrong;
    if (!alpha || !beta || !x || !w || !y || !z || !bias || !desc_z || !desc_bias || !activation)
        return ::cuda_cpu::bad_param(p.call, "a pointer is null");
    bool relu = activation->mode == CUDNN_ACTIVATION_RELU;
    bool none = activation->mode == CUDNN_ACTIVATION_IDENTITY &&
                algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
    if (!relu && !none)
        return ::cuda_cpu::not_supported(
            p.call, "only ReLU is fused, or with IMPLICIT_PRECOMP_GEMM no activation");
    const int* dim = desc_bias->dim;
    if (dim[0] != 1 || dim[1] != desc_y->dim[1] || dim[2] != 1 || dim[3] != 1)
        return ::cuda_cpu::bad_param(p.call, "the bias is not of shape 1 x outputs x 1 x 1");
    if (!::cuda_cpu::same_shape(desc_z, desc_y))
        return ::cuda_cpu::bad_param(p.call, "z and y differ in shape or type");
    double scale = ::cuda_cpu::scalar(desc_x->type, alpha);
    double keep = ::cuda_cpu::scalar(desc_x->type, beta);
    cudnnTensorStruct other = *desc_z;
    ::cuda_cpu::Activation f{activation->mode};
    return ::cuda_cpu::with_type(desc_x->type, [&](auto* type) {
        using T = std::remove_pointer_t<decltype(type)>;
        auto finish = [=](double sum, long n, long c, long row, long col) {
            if (keep != 0)
                sum += keep * double(((const T*)z)[::cuda_cpu::place(other, n, c, row, col)]);
            return f(sum + double(((const T*)bias)[c]));
        };
        return ::cuda_cpu::convolve(h->stream, p, scale, (const T*)x, (const T*)w, 0.0, *desc_y,
                                    (T*)y, finish);
    });
}
#include "macros_back.inc"
