// The operators through PyTorch's C++ interface: all of ATen, for the one version that it is
// compiled with.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>
#ifdef WITH_CUDA
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

#include "run.h"

namespace {

Type type_of(const at::Tensor& x) {
    switch (x.scalar_type()) {
        case at::kHalf:
            return Type::float16;
        case at::kBFloat16:
            return Type::bfloat16;
        case at::kFloat:
            return Type::float32;
        case at::kDouble:
            return Type::float64;
        default:
            break;
    }
    TORCH_CHECK_TYPE(false, "polynomial takes floating-point numbers, not ", x.scalar_type());
}

// x itself if its numbers lie in memory as those of `like`, which have no gaps; else a copy.
at::Tensor laid_out(const at::Tensor& x, const at::Tensor& like) {
    return x.strides() == like.strides() ? x : at::empty_like(like).copy_(x);
}

void check_slopes(const at::Tensor& dy, const at::Tensor& x) {
    TORCH_CHECK(dy.scalar_type() == x.scalar_type() && dy.sizes() == x.sizes(),
                "dy must have the type and the shape of x");
    TORCH_CHECK(dy.device() == x.device(), "dy must lie where x lies");
}

at::Tensor forward_on_cpu(const at::Tensor& x, double a, double b, double c) {
    const Type type = type_of(x);
    const at::Tensor y = at::empty_like(x), flat = laid_out(x, y);
    cpu::forward(type, y.mutable_data_ptr(), flat.const_data_ptr(), {a, b, c}, x.numel());
    return y;
}

at::Tensor backward_on_cpu(const at::Tensor& dy, const at::Tensor& x, double a, double b) {
    check_slopes(dy, x);
    const at::Tensor dx = at::empty_like(x), slopes = laid_out(dy, dx), flat = laid_out(x, dx);
    cpu::backward(type_of(x), dx.mutable_data_ptr(), slopes.const_data_ptr(), flat.const_data_ptr(),
                  {a, b, 0}, x.numel());
    return dx;
}

#ifdef WITH_CUDA
at::Tensor forward_on_gpu(const at::Tensor& x, double a, double b, double c) {
    const Type type = type_of(x);
    const c10::cuda::CUDAGuard guard(x.device());
    const at::Tensor y = at::empty_like(x), flat = laid_out(x, y);
    const int error = gpu::forward(type, y.mutable_data_ptr(), flat.const_data_ptr(), {a, b, c},
                                   x.numel(), c10::cuda::getCurrentCUDAStream());
    TORCH_CHECK(error == 0, "polynomial: CUDA error ", error);
    return y;
}

at::Tensor backward_on_gpu(const at::Tensor& dy, const at::Tensor& x, double a, double b) {
    check_slopes(dy, x);
    const c10::cuda::CUDAGuard guard(x.device());
    const at::Tensor dx = at::empty_like(x), slopes = laid_out(dy, dx), flat = laid_out(x, dx);
    const int error = gpu::backward(type_of(x), dx.mutable_data_ptr(), slopes.const_data_ptr(),
                                    flat.const_data_ptr(), {a, b, 0}, x.numel(),
                                    c10::cuda::getCurrentCUDAStream());
    TORCH_CHECK(error == 0, "polynomial_backward: CUDA error ", error);
    return dx;
}
#endif

}  // namespace

TORCH_LIBRARY(polynomial_inline, m) {
    m.def("polynomial(Tensor x, float a, float b, float c) -> Tensor");
    m.def("polynomial_backward(Tensor dy, Tensor x, float a, float b) -> Tensor");
}

TORCH_LIBRARY_IMPL(polynomial_inline, CPU, m) {
    m.impl("polynomial", forward_on_cpu);
    m.impl("polynomial_backward", backward_on_cpu);
}

#ifdef WITH_CUDA
TORCH_LIBRARY_IMPL(polynomial_inline, CUDA, m) {
    m.impl("polynomial", forward_on_gpu);
    m.impl("polynomial_backward", backward_on_gpu);
}
#endif
