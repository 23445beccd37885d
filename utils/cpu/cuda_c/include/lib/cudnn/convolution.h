// cuDNN on the CPU: the convolution itself, and what its algorithms ask for.
#pragma once
#include "descriptors.h"
#include "../macros_aside.inc"

typedef enum {
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM = 0,
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM = 1,
    CUDNN_CONVOLUTION_FWD_ALGO_GEMM = 2,
    CUDNN_CONVOLUTION_FWD_ALGO_DIRECT = 3,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT = 4,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING = 5,
    CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD = 6,
    CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED = 7,
    CUDNN_CONVOLUTION_FWD_ALGO_COUNT = 8
} cudnnConvolutionFwdAlgo_t;
typedef struct {
    cudnnConvolutionFwdAlgo_t algo;
    cudnnStatus_t status;
    float time;
    size_t memory;
    cudnnDeterminism_t determinism;
    cudnnMathType_t mathType;
    int reserved[3];
} cudnnConvolutionFwdAlgoPerf_t;

namespace cuda_cpu {
struct ConvolutionProblem {
    const char* call;
    const cudnnTensorStruct* x;
    const cudnnFilterStruct* filter;
    const cudnnConvolutionStruct* how;

    const cudnnTensorStruct& w() const {
        return filter->weights;
    }
    // Rows (axis 0) or columns (axis 1) of the output.
    int extent(int axis) const {
        int reach = (w().dim[2 + axis] - 1) * how->dilation[axis] + 1;
        int room = x->dim[2 + axis] + 2 * how->pad[axis] - reach;
        return room < 0 ? 0 : room / how->stride[axis] + 1;
    }
    cudnnStatus_t check() const {
        if (!x || !filter || !how || !how->set)
            return bad_param(call, "a descriptor is null or was not set");
        if (w().type != x->type)
            return bad_param(call, "the filter has another type than the input");
        if (x->dim[1] != w().dim[1] * how->groups)
            return bad_param(call,
                             "the input's channels are not those of the filter, times groups");
        if (w().dim[0] % how->groups)
            return bad_param(call, "the outputs cannot be shared out among the groups");
        if (extent(0) < 1 || extent(1) < 1)
            return bad_param(call, "the filter is larger than the padded image");
        return CUDNN_STATUS_SUCCESS;
    }
    cudnnStatus_t check_output(const cudnnTensorStruct* y) const {
        if (!y || y->type != x->type)
            return bad_param(call, "the output has another type than the input");
        int wanted[] = {x->dim[0], w().dim[0], extent(0), extent(1)};
        for (int d = 0; d < 4; d++)
            if (y->dim[d] != wanted[d])
                return bad_param(call,
                                 "the output's shape is not the one that "
                                 "cudnnGetConvolution2dForwardOutputDim says");
        return CUDNN_STATUS_SUCCESS;
    }

    // Whether an algorithm takes this problem, and how many bytes it needs.
    bool supports(cudnnConvolutionFwdAlgo_t algo) const {
        bool every_pixel = how->stride[0] == 1 && how->stride[1] == 1;
        bool dense = how->dilation[0] == 1 && how->dilation[1] == 1;
        bool square = w().dim[2] == w().dim[3];
        bool is_3 = square && w().dim[2] == 3, is_5 = square && w().dim[2] == 5;
        switch (algo) {
            case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM:
            case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM:
                return true;
            case CUDNN_CONVOLUTION_FWD_ALGO_GEMM:
                return dense && how->groups == 1;
            case CUDNN_CONVOLUTION_FWD_ALGO_FFT:
            case CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING:
                return every_pixel && dense && how->groups == 1;
            case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD:
                return every_pixel && dense && is_3;
            case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED:
                return every_pixel && dense && (is_3 || is_5);
            default:
                return false;
        }
    }
    size_t workspace(cudnnConvolutionFwdAlgo_t algo) const {
        size_t pixels = size_t(extent(0)) * extent(1), taps = size_t(w().dim[2]) * w().dim[3];
        size_t images = x->dim[0], in = x->dim[1], out = w().dim[0];
        size_t planes = images * in + out * in + images * out;
        size_t spectrum = size_t(x->dim[2] + w().dim[2]) * (x->dim[3] + w().dim[3]);
        switch (algo) {
            case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM:
                return pixels * taps * sizeof(int);  // where each tap of each pixel lies
            case CUDNN_CONVOLUTION_FWD_ALGO_GEMM:
                return in * taps * pixels * size_of(x->type);  // the image as a matrix (im2col)
            case CUDNN_CONVOLUTION_FWD_ALGO_FFT:
            case CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING:
                return planes * spectrum * sizeof(float2);
            case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED:
                return planes * 4 * pixels * sizeof(float);
            default:
                return 0;
        }
    }
};

struct NoFinish {
    double operator()(double value, long, long, long, long) const {
        return value;
    }
};

// y = finish(alpha * convolution(x, w) + beta * y): a block for each channel of each image.
template <class T, class Finish>
inline cudaError_t convolve(cudaStream_t stream, const ConvolutionProblem& problem, double alpha,
                            const T* x, const T* w, double beta, const cudnnTensorStruct& to, T* y,
                            Finish finish) {
    const cudnnTensorStruct from = *problem.x, by = problem.w();
    const cudnnConvolutionStruct how = *problem.how;
    using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
    bool tf32 = std::is_same_v<T, float> && how.math != CUDNN_FMA_MATH;
    return device_task(stream, long(to.dim[0]) * to.dim[1], [=](long block) {
        int image = int(block / to.dim[1]), out = int(block % to.dim[1]);
        int first = out / (to.dim[1] / how.groups) * by.dim[1];
        int rows = to.dim[2], columns = to.dim[3];
        auto value = [&](const T& v) { return tf32 ? Sum(tf32_of(float(v))) : Sum(v); };
        auto tap = [&](int c, int r, int s) {  // a convolution proper turns its filter round
            bool turned = how.mode == CUDNN_CONVOLUTION;
            int i = turned ? by.dim[2] - 1 - r : r, j = turned ? by.dim[3] - 1 - s : s;
            return value(
                w[out * by.stride[0] + c * by.stride[1] + i * by.stride[2] + j * by.stride[3]]);
        };
        std::vector<Sum> sums(size_t(rows) * columns);
        for (int c = 0; c < by.dim[1]; c++)
            for (int r = 0; r < by.dim[2]; r++)
                for (int s = 0; s < by.dim[3]; s++) {
                    const Sum factor = tap(c, r, s);
                    const T* plane = x + image * from.stride[0] + (first + c) * from.stride[1];
                    for (int p = 0; p < rows; p++) {
                        int row = p * how.stride[0] - how.pad[0] + r * how.dilation[0];
                        if (row < 0 || row >= from.dim[2])
                            continue;
                        for (int q = 0; q < columns; q++) {
                            int column = q * how.stride[1] - how.pad[1] + s * how.dilation[1];
                            if (column >= 0 && column < from.dim[3])
                                sums[p * columns + q] +=
                                    factor *
                                    value(plane[row * from.stride[2] + column * from.stride[3]]);
                        }
                    }
                }
        for (int p = 0; p < rows; p++)
            for (int q = 0; q < columns; q++) {
                T& place = y[image * to.stride[0] + out * to.stride[1] + p * to.stride[2] +
                             q * to.stride[3]];
                double result = alpha * double(sums[p * columns + q]);
                if (beta != 0)
                    result += beta * double(place);
                place = T(Sum(finish(result, image, out, p, q)));
            }
    });
}

// Calls f with a null pointer of the type that the value names.
template <class F>
inline cudnnStatus_t with_type(cudnnDataType_t type, F f) {
    cudaError_t error = cudaSuccess;
    switch (type) {
        case CUDNN_DATA_FLOAT:
            error = f((float*)nullptr);
            break;
        case CUDNN_DATA_DOUBLE:
            error = f((double*)nullptr);
            break;
        case CUDNN_DATA_HALF:
            error = f((__half*)nullptr);
            break;
        case CUDNN_DATA_BFLOAT16:
            error = f((__nv_bfloat16*)nullptr);
            break;
        default:
            return CUDNN_STATUS_NOT_SUPPORTED;
    }
    return error == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}
// alpha and beta are doubles for double tensors, floats for all others.
inline double scalar(cudnnDataType_t type, const void* p) {
    return type == CUDNN_DATA_DOUBLE ? *(const double*)p : double(*(const float*)p);
}
}  // namespace cuda_cpu
#include "../macros_back.inc"
