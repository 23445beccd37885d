// A convolution by cuDNN's legacy interface, in float32. conv [batch channels side] [time]
#include <cudnn.h>
#include "clock.cuh"

constexpr int FILTER = 3, PADDING = 1;

struct Shape {
    int n, c, h, w;
    size_t size() const {
        return size_t(n) * c * h * w;
    }
};

cudnnTensorDescriptor_t tensor(Shape s) {
    cudnnTensorDescriptor_t descriptor;
    CHECK(cudnnCreateTensorDescriptor(&descriptor));
    CHECK(cudnnSetTensor4dDescriptor(descriptor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, s.n, s.c, s.h,
                                     s.w));
    return descriptor;
}

// What one convolution needs: four descriptors, an algorithm, a workspace.
struct Convolution {
    cudnnHandle_t handle;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t how;
    cudnnConvolutionFwdAlgoPerf_t way;
    char* workspace = nullptr;

    Convolution(Shape in, int channels_out) {
        CHECK(cudnnCreate(&handle));
        x = tensor(in);
        y = tensor({in.n, channels_out, in.h, in.w});
        CHECK(cudnnCreateFilterDescriptor(&w));
        CHECK(cudnnSetFilter4dDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, channels_out, in.c,
                                         FILTER, FILTER));
        CHECK(cudnnCreateConvolutionDescriptor(&how));
        CHECK(cudnnSetConvolution2dDescriptor(how, PADDING, PADDING, 1, 1, 1, 1,
                                              CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
        CHECK(cudnnSetConvolutionMathType(how, CUDNN_FMA_MATH));  // float32, and no TF32
        int found = 0;
        CHECK(cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, how, y, 1, &found, &way));
        CHECK(way.status);
        if (way.memory > 0)
            CHECK(cudaMalloc(&workspace, way.memory));
    }

    void operator()(float* out, const float* in, const float* filters) {
        const float alpha = 1, beta = 0;
        CHECK(cudnnConvolutionForward(handle, &alpha, x, in, w, filters, how, way.algo, workspace,
                                      way.memory, &beta, y, out));
    }

    ~Convolution() {
        cudaFree(workspace);
        cudnnDestroyConvolutionDescriptor(how);
        cudnnDestroyFilterDescriptor(w);
        cudnnDestroyTensorDescriptor(y);
        cudnnDestroyTensorDescriptor(x);
        cudnnDestroy(handle);
    }
};

// The trap: a way that needs a workspace is called without one. Whether there is such a way.
bool forgotten_workspace(Convolution& its, float* out, const float* in, const float* filters) {
    const float alpha = 1, beta = 0;
    for (cudnnConvolutionFwdAlgo_t way :
         {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM}) {
        size_t bytes = 0;
        const cudnnStatus_t asked = cudnnGetConvolutionForwardWorkspaceSize(
            its.handle, its.x, its.w, its.how, its.y, way, &bytes);
        if (asked != CUDNN_STATUS_SUCCESS || bytes == 0)
            continue;
        const cudnnStatus_t status =
            cudnnConvolutionForward(its.handle, &alpha, its.x, in, its.w, filters, its.how, way,
                                    nullptr, 0, &beta, its.y, out);
        std::printf("without its workspace: %s\n", cudnnGetErrorString(status));
        return true;
    }
    std::printf("no way needs a workspace here\n");
    return false;
}

// One number of the result, in float64.
double at(const std::vector<float>& x, const std::vector<float>& w, Shape in, int image, int filter,
          int row, int column) {
    double sum = 0;
    for (int c = 0; c < in.c; c++)
        for (int dy = 0; dy < FILTER; dy++)
            for (int dx = 0; dx < FILTER; dx++) {
                const int y = row + dy - PADDING, at_x = column + dx - PADDING;
                if (y < 0 || y >= in.h || at_x < 0 || at_x >= in.w)
                    continue;
                const size_t pixel = ((size_t(image) * in.c + c) * in.h + y) * in.w + at_x;
                sum += double(x[pixel]) * w[((filter * in.c + c) * FILTER + dy) * FILTER + dx];
            }
    return sum;
}

// The largest error of the first and the last image's first and last channel.
double error_of(const std::vector<float>& found, const std::vector<float>& x,
                const std::vector<float>& w, Shape in, int channels_out) {
    double largest = 0;
    for (int image : {0, in.n - 1})
        for (int filter : {0, channels_out - 1})
            for (int i = 0; i < in.h * in.w; i++) {
                const double right = at(x, w, in, image, filter, i / in.w, i % in.w);
                const size_t place = (size_t(image) * channels_out + filter) * in.h * in.w + i;
                const double error = std::fabs(found[place] - right);
                largest = error <= largest ? largest : error;
            }
    return largest;
}

int main(int argc, char** argv) {
    const Arguments given = {argc, argv};
    const int images = given.number(1, 2);
    const int channels = given.number(2, 3);
    const int side = given.number(3, 8);
    const Shape in = {images, channels, side, side};
    const auto x = random_floats(in.size(), 1);
    const auto w = random_floats(channels * channels * FILTER * FILTER, 2);
    Device<float> d_x(x), d_w(w), d_y(in.size());

    Convolution convolution(in, channels);
    const double allowed = 1e-4 * std::sqrt(channels);  // Winograd's way rounds more than the sum
    if (forgotten_workspace(convolution, d_y, d_x, d_w)) {  // d_y held poison before
        const double error = error_of(d_y.host(), x, w, in, channels);
        std::printf("and its result: %s\n", error <= allowed ? "right" : "WRONG");
    }
    convolution(d_y, d_x, d_w);
    require("convolution", error_of(d_y.host(), x, w, in, channels), allowed);
    if (wants_time(argc, argv))
        print_time("conv", [&] { convolution(d_y, d_x, d_w); });
}
