// flags: -lcudnn
// cuDNN's legacy convolution: descriptors, algorithm, workspace, bias, ReLU, and wrong calls.
#include <cstdio>
#include <cudnn.h>

float *x, *w, *y, *bias;

void show(int n) {
    cudaDeviceSynchronize();
    for (int i = 0; i < n; i++)
        printf("%g ", y[i]);
    printf("\n");
}

int main() {
    for (float** p : {&x, &w, &y, &bias})
        cudaMallocManaged(p, 256 * sizeof(float));
    for (int i = 0; i < 256; i++)
        x[i] = i % 7 - 3, w[i] = i % 5 - 2, y[i] = 0, bias[i] = 3 * i - 2;
    cudnnHandle_t handle;
    cudnnCreate(&handle);
    cudnnTensorDescriptor_t in, out, per_channel;
    cudnnFilterDescriptor_t filter;
    cudnnConvolutionDescriptor_t conv;
    cudnnActivationDescriptor_t relu;
    for (auto t : {&in, &out, &per_channel})
        cudnnCreateTensorDescriptor(t);
    cudnnCreateFilterDescriptor(&filter);
    cudnnCreateConvolutionDescriptor(&conv);
    cudnnCreateActivationDescriptor(&relu);
    cudnnSetTensor4dDescriptor(in, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 2, 5, 4);
    cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 3, 2, 3, 2);
    cudnnSetTensor4dDescriptor(per_channel, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 3, 1, 1);
    cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0);
    float one = 1, zero = 0;
    const auto algo = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
    for (auto mode : {CUDNN_CROSS_CORRELATION, CUDNN_CONVOLUTION}) {
        cudnnSetConvolution2dDescriptor(conv, 1, 0, 2, 1, 1, 1, mode, CUDNN_DATA_FLOAT);
        cudnnSetConvolutionMathType(conv, CUDNN_FMA_MATH);
        int n, c, height, width;
        cudnnGetConvolution2dForwardOutputDim(conv, in, filter, &n, &c, &height, &width);
        printf("%d %d %d %d\n", n, c, height, width);
        cudnnSetTensor4dDescriptor(out, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, height, width);
        size_t bytes = 0;
        cudnnGetConvolutionForwardWorkspaceSize(handle, in, filter, conv, out, algo, &bytes);
        void* workspace = nullptr;
        if (bytes)
            cudaMalloc(&workspace, bytes);
        int status = cudnnConvolutionForward(handle, &one, in, x, filter, w, conv, algo, workspace,
                                             bytes, &zero, out, y);
        printf("%d: ", status);
        show(n * c * height * width);
        cudnnAddTensor(handle, &one, per_channel, bias, &one, out, y);
        cudnnActivationForward(handle, relu, &one, out, y, &zero, out, y);
        show(n * c * height * width);
        cudaFree(workspace);
    }
    cudnnConvolutionFwdAlgoPerf_t best[8];
    int found = 0;
    int status =
        cudnnGetConvolutionForwardAlgorithm_v7(handle, in, filter, conv, out, 8, &found, best);
    printf("%d %d %d\n", status, found > 0, best[0].status);
    cudnnSetTensor4dDescriptor(out, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 4, 3);
    status = cudnnConvolutionForward(handle, &one, in, x, filter, w, conv, algo, nullptr, 0, &zero,
                                     out, y);
    printf("wrong shape: %d\n", status != CUDNN_STATUS_SUCCESS);
    cudnnSetTensor4dDescriptor(in, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 5, 4);
    int n, c, height, width;
    status = cudnnGetConvolution2dForwardOutputDim(conv, in, filter, &n, &c, &height, &width);
    printf("wrong channels: %d\n", status != CUDNN_STATUS_SUCCESS);
    for (auto t : {in, out, per_channel})
        cudnnDestroyTensorDescriptor(t);
    cudnnDestroyFilterDescriptor(filter);
    cudnnDestroyConvolutionDescriptor(conv);
    cudnnDestroyActivationDescriptor(relu);
    cudnnDestroy(handle);
    for (float* p : {x, w, y, bias})
        cudaFree(p);
}
