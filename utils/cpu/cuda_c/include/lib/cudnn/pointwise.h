// cuDNN on the CPU: a tensor added to another, activations, softmax.
#pragma once
#include "convolution.h"
#include "../macros_aside.inc"

typedef enum {
    CUDNN_SOFTMAX_FAST = 0,
    CUDNN_SOFTMAX_ACCURATE = 1,
    CUDNN_SOFTMAX_LOG = 2
} cudnnSoftmaxAlgorithm_t;
typedef enum { CUDNN_SOFTMAX_MODE_INSTANCE = 0, CUDNN_SOFTMAX_MODE_CHANNEL = 1 } cudnnSoftmaxMode_t;

namespace cuda_cpu {
struct Activation {
    cudnnActivationMode_t mode;
    double operator()(double x) const {
        switch (mode) {
            case CUDNN_ACTIVATION_RELU:
                return x > 0 ? x : 0;
            case CUDNN_ACTIVATION_SIGMOID:
                return 1 / (1 + std::exp(-x));
            case CUDNN_ACTIVATION_TANH:
                return std::tanh(x);
            default:
                return x;
        }
    }
};
inline long place(const cudnnTensorStruct& t, long n, long c, long h, long w) {
    return n * t.stride[0] + c * t.stride[1] + h * t.stride[2] + w * t.stride[3];
}
// f(image, channel, row, column) for every element, a block for each image.
template <class F>
inline cudaError_t each_element(cudaStream_t stream, const cudnnTensorStruct& t, F f) {
    cudnnTensorStruct shape = t;
    return device_task(stream, t.dim[0], [=](long n) {
        for (long c = 0; c < shape.dim[1]; c++)
            for (long h = 0; h < shape.dim[2]; h++)
                for (long w = 0; w < shape.dim[3]; w++)
                    f(n, c, h, w);
    });
}
inline bool same_shape(const cudnnTensorStruct* a, const cudnnTensorStruct* b) {
    for (int d = 0; d < 4; d++)
        if (a->dim[d] != b->dim[d])
            return false;
    return a->type == b->type;
}
// A dimension of 1 is used again and again.
inline bool broadcasts(const cudnnTensorStruct* a, const cudnnTensorStruct* to) {
    for (int d = 0; d < 4; d++)
        if (a->dim[d] != to->dim[d] && a->dim[d] != 1)
            return false;
    return a->type == to->type;
}
inline cudnnTensorStruct broadcast(const cudnnTensorStruct& t) {
    cudnnTensorStruct out = t;
    for (int d = 0; d < 4; d++)
        if (t.dim[d] == 1)
            out.stride[d] = 0;
    return out;
}
}  // namespace cuda_cpu

// c = alpha * a + beta * c, with a's dimensions of 1 repeated: a bias for each channel, say.
inline cudnnStatus_t cudnnAddTensor(cudnnHandle_t h, const void* alpha,
                                    const cudnnTensorDescriptor_t desc_a, const void* a,
                                    const void* beta, const cudnnTensorDescriptor_t desc_c,
                                    void* c) {
    if (!h)
        return CUDNN_STATUS_NOT_INITIALIZED;
    if (!desc_a || !desc_c || !a || !c || !::cuda_cpu::broadcasts(desc_a, desc_c))
        return ::cuda_cpu::bad_param("cudnnAddTensor", "the shapes or the types do not fit");
    double scale = ::cuda_cpu::scalar(desc_c->type, alpha);
    double keep = ::cuda_cpu::scalar(desc_c->type, beta);
    cudnnTensorStruct from = ::cuda_cpu::broadcast(*desc_a), to = *desc_c;
    return ::cuda_cpu::with_type(to.type, [=](auto* type) {
        using T = std::remove_pointer_t<decltype(type)>;
        return ::cuda_cpu::each_element(h->stream, to, [=](long n, long ch, long y, long x) {
            T& out = ((T*)c)[::cuda_cpu::place(to, n, ch, y, x)];
            double value = scale * double(((const T*)a)[::cuda_cpu::place(from, n, ch, y, x)]);
            out = T(float(keep == 0 ? value : value + keep * double(out)));
        });
    });
}
inline cudnnStatus_t cudnnActivationForward(cudnnHandle_t h, cudnnActivationDescriptor_t how,
                                            const void* alpha, const cudnnTensorDescriptor_t desc_x,
                                            const void* x, const void* beta,
                                            const cudnnTensorDescriptor_t desc_y, void* y) {
    if (!h)
        return CUDNN_STATUS_NOT_INITIALIZED;
    if (!how || !desc_x || !desc_y || !x || !y || !::cuda_cpu::same_shape(desc_x, desc_y))
        return ::cuda_cpu::bad_param("cudnnActivationForward", "the shapes or the types differ");
    double scale = ::cuda_cpu::scalar(desc_x->type, alpha);
    double keep = ::cuda_cpu::scalar(desc_x->type, beta);
    ::cuda_cpu::Activation f{how->mode};
    cudnnTensorStruct from = *desc_x, to = *desc_y;
    return ::cuda_cpu::with_type(to.type, [=](auto* type) {
        using T = std::remove_pointer_t<decltype(type)>;
        return ::cuda_cpu::each_element(h->stream, to, [=](long n, long ch, long row, long col) {
            T& out = ((T*)y)[::cuda_cpu::place(to, n, ch, row, col)];
            double in = double(((const T*)x)[::cuda_cpu::place(from, n, ch, row, col)]);
            double value = scale * f(in);
            out = T(float(keep == 0 ? value : value + keep * double(out)));
        });
    });
}
// Over the channels of each pixel, or over a whole image.
inline cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t h, cudnnSoftmaxAlgorithm_t algo,
                                         cudnnSoftmaxMode_t mode, const void* alpha,
                                         const cudnnTensorDescriptor_t desc_x, const void* x,
                                         const void* beta, const cudnnTensorDescriptor_t desc_y,
                                         void* y) {
    if (!h)
        return CUDNN_STATUS_NOT_INITIALIZED;
    if (!desc_x || !desc_y || !x || !y || !::cuda_cpu::same_shape(desc_x, desc_y))
        return ::cuda_cpu::bad_param("cudnnSoftmaxForward", "the shapes or the types differ");
    double scale = ::cuda_cpu::scalar(desc_x->type, alpha);
    double keep = ::cuda_cpu::scalar(desc_x->type, beta);
    cudnnTensorStruct from = *desc_x, to = *desc_y;
    bool whole = mode == CUDNN_SOFTMAX_MODE_INSTANCE;
    int rows = from.dim[2], columns = from.dim[3], channels = from.dim[1];
    int pixels = rows * columns, groups = whole ? 1 : pixels;
    int length = whole ? channels * pixels : channels;
    return ::cuda_cpu::with_type(to.type, [=](auto* type) {
        using T = std::remove_pointer_t<decltype(type)>;
        return ::cuda_cpu::device_task(h->stream, long(from.dim[0]) * groups, [=](long block) {
            long image = block / groups, pixel = block % groups;
            auto at = [&](const cudnnTensorStruct& t, int i) {
                long p = whole ? i % pixels : pixel, c = whole ? i / pixels : i;
                return ::cuda_cpu::place(t, image, c, p / columns, p % columns);
            };
            double largest = -INFINITY, sum = 0;
            for (int i = 0; i < length; i++)
                largest = std::fmax(largest, double(((const T*)x)[at(from, i)]));
            for (int i = 0; i < length; i++)
                sum += std::exp(double(((const T*)x)[at(from, i)]) - largest);
            for (int i = 0; i < length; i++) {
                double z = double(((const T*)x)[at(from, i)]) - largest;
                double value = algo == CUDNN_SOFTMAX_LOG ? z - std::log(sum) : std::exp(z) / sum;
                T& out = ((T*)y)[at(to, i)];
                out = T(float(scale * value + (keep == 0 ? 0 : keep * double(out))));
            }
        });
    });
}
#include "../macros_back.inc"
