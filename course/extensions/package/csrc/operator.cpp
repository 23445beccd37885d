// The operators as PyTorch knows them, through the stable interface: C functions behind headers,
// the same in every PyTorch from 2.10 on.
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <stdexcept>
#include <string>

#include "run.h"

using torch::stable::Tensor;

namespace {

// PyTorch's STD_TORCH_CHECK writes its message to a stream, which fails in a library that brings a
// C++ standard library of its own (-static-libstdc++): a string needs no stream.
void check(bool right, const std::string& otherwise) {
    if (!right)
        throw std::runtime_error(otherwise);
}

Type type_of(const Tensor& x) {
    using torch::headeronly::ScalarType;
    switch (x.scalar_type()) {
        case ScalarType::Half:
            return Type::float16;
        case ScalarType::BFloat16:
            return Type::bfloat16;
        case ScalarType::Float:
            return Type::float32;
        case ScalarType::Double:
            return Type::float64;
        default:
            throw std::runtime_error("polynomial takes float16, bfloat16, float32 or float64");
    }
}

bool lies_like(const Tensor& x, const Tensor& y) {
    for (int64_t axis = 0; axis < x.dim(); ++axis)
        if (x.size(axis) > 1 && x.stride(axis) != y.stride(axis))
            return false;
    return true;
}

bool have_one_shape(const Tensor& x, const Tensor& y) {
    if (x.dim() != y.dim())
        return false;
    for (int64_t axis = 0; axis < x.dim(); ++axis)
        if (x.size(axis) != y.size(axis))
            return false;
    return true;
}

void check_slopes(const Tensor& dy, const Tensor& x) {
    check(dy.scalar_type() == x.scalar_type(), "dy and x must have one type");
    check(dy.get_device_index() == x.get_device_index(), "dy and x must lie on one device");
    check(have_one_shape(dy, x), "dy and x must have one shape");
}

// x itself if its numbers lie in memory as those of `like`, which have no gaps; else a copy.
Tensor laid_out(const Tensor& x, const Tensor& like) {
    if (lies_like(x, like))
        return x;
    Tensor copy = torch::stable::empty_like(like);
    torch::stable::copy_(copy, x);
    return copy;
}

Tensor forward_on_cpu(Tensor x, double a, double b, double c) {
    const Type type = type_of(x);
    Tensor y = torch::stable::empty_like(x);
    Tensor flat = laid_out(x, y);
    cpu::forward(type, y.mutable_data_ptr(), flat.const_data_ptr(), {a, b, c}, x.numel());
    return y;
}

Tensor backward_on_cpu(Tensor dy, Tensor x, double a, double b) {
    const Type type = type_of(x);
    check_slopes(dy, x);
    Tensor dx = torch::stable::empty_like(x);
    Tensor slopes = laid_out(dy, dx), flat = laid_out(x, dx);
    cpu::backward(type, dx.mutable_data_ptr(), slopes.const_data_ptr(), flat.const_data_ptr(),
                  {a, b, 0}, x.numel());
    return dx;
}

#ifdef USE_CUDA
using torch::stable::accelerator::DeviceGuard;

void* current_stream(const Tensor& x) {
    void* stream = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(x.get_device_index(), &stream));
    return stream;
}

Tensor forward_on_gpu(Tensor x, double a, double b, double c) {
    const Type type = type_of(x);
    const DeviceGuard guard(x.get_device_index());
    Tensor y = torch::stable::empty_like(x);
    Tensor flat = laid_out(x, y);
    const int error = gpu::forward(type, y.mutable_data_ptr(), flat.const_data_ptr(), {a, b, c},
                                   x.numel(), current_stream(x));
    check(error == 0, "polynomial: CUDA error " + std::to_string(error));
    return y;
}

Tensor backward_on_gpu(Tensor dy, Tensor x, double a, double b) {
    const Type type = type_of(x);
    check_slopes(dy, x);
    const DeviceGuard guard(x.get_device_index());
    Tensor dx = torch::stable::empty_like(x);
    Tensor slopes = laid_out(dy, dx), flat = laid_out(x, dx);
    const int error = gpu::backward(type, dx.mutable_data_ptr(), slopes.const_data_ptr(),
                                    flat.const_data_ptr(), {a, b, 0}, x.numel(), current_stream(x));
    check(error == 0, "polynomial_backward: CUDA error " + std::to_string(error));
    return dx;
}
#endif

}  // namespace

STABLE_TORCH_LIBRARY(polynomial_op, m) {
    m.def("polynomial(Tensor x, float a, float b, float c) -> Tensor");
    m.def("polynomial_backward(Tensor dy, Tensor x, float a, float b) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(polynomial_op, CPU, m) {
    m.impl("polynomial", TORCH_BOX(&forward_on_cpu));
    m.impl("polynomial_backward", TORCH_BOX(&backward_on_cpu));
}

#ifdef USE_CUDA
STABLE_TORCH_LIBRARY_IMPL(polynomial_op, CUDA, m) {
    m.impl("polynomial", TORCH_BOX(&forward_on_gpu));
    m.impl("polynomial_backward", TORCH_BOX(&backward_on_gpu));
}
#endif
