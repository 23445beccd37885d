// The kernels as functions on DLPack tensors: no header of PyTorch, no header of Python.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include "run.h"

using tvm::ffi::TensorView;

namespace {

Type type_of(const TensorView& x) {
    const DLDataType type = x.dtype();
    if (type.code == kDLBfloat)
        return Type::bfloat16;
    TVM_FFI_ICHECK(type.code == kDLFloat && type.bits >= 16) << "polynomial takes floats";
    if (type.bits == 16)
        return Type::float16;
    return type.bits == 32 ? Type::float32 : Type::float64;
}

#ifdef WITH_CUDA
// The stream that the caller's framework is using, as it told tvm-ffi when it handed the tensor
// over.
void* current_stream(const TensorView& x) {
    return TVMFFIEnvGetStream(x.device().device_type, x.device().device_id);
}
#endif

}  // namespace

void forward(TensorView y, TensorView x, double a, double b, double c) {
    const Coefficients with{a, b, c};
#ifdef WITH_CUDA
    if (x.device().device_type == kDLCUDA) {
        const int error = gpu::forward(type_of(x), y.data_ptr(), x.data_ptr(), with, x.numel(),
                                       current_stream(x));
        TVM_FFI_ICHECK(error == 0) << "polynomial: CUDA error " << error;
        return;
    }
#endif
    cpu::forward(type_of(x), y.data_ptr(), x.data_ptr(), with, x.numel());
}

void backward(TensorView dx, TensorView dy, TensorView x, double a, double b) {
    const Coefficients with{a, b, 0};
#ifdef WITH_CUDA
    if (x.device().device_type == kDLCUDA) {
        const int error = gpu::backward(type_of(x), dx.data_ptr(), dy.data_ptr(), x.data_ptr(),
                                        with, x.numel(), current_stream(x));
        TVM_FFI_ICHECK(error == 0) << "polynomial_backward: CUDA error " << error;
        return;
    }
#endif
    cpu::backward(type_of(x), dx.data_ptr(), dy.data_ptr(), x.data_ptr(), with, x.numel());
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(forward, forward);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(backward, backward);
