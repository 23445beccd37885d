"""Triton kernels on the CPU, through Triton's own interpreter, with what it gets wrong put right.

- bfloat16: the interpreter keeps its values as 16-bit integers and computes with those (`tl.dot`,
  +, sums: all silently wrong). Here such operations are done in float32 and rounded back, as the
  GPU does.
- Loads and stores outside every argument, which crash Python or read what lies there, are errors.
- `triton.testing.do_bench` runs the function once and returns NaN: a CPU's time is no measurement
  of a GPU. `triton.autotune` runs every configuration once and keeps the first.

One thing differs and cannot be seen: `tl.dot` of float32 is exact float32 here, TF32 on a GPU by
default.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import math
import os
import sys
import warnings

import numpy as np

_MISSING = (
    "Triton is not installed: it exists for Linux only. Run the Triton cells on Linux or in Colab; "
    "everything else of the course runs here."
)


def install():
    """Make `import triton` give the corrected interpreter. Call it before that import."""
    os.environ["TRITON_INTERPRET"] = "1"
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _Finder())
    for name, correct in _CORRECTIONS.items():
        if name in sys.modules:
            correct(sys.modules[name])


class _Finder(importlib.abc.MetaPathFinder):
    """Corrects a few of Triton's modules right after their import; none is imported early."""

    def find_spec(self, name, path=None, target=None):
        if name == "triton" or name in _CORRECTIONS:
            spec = importlib.machinery.PathFinder.find_spec(name, path)
            if spec is None and sys._getframe(2).f_code.co_name == "_find_and_load_unlocked":
                raise ModuleNotFoundError(_MISSING, name=name)  # others only ask
            if spec is not None and name in _CORRECTIONS:
                spec.loader = _Loader(spec.loader, _CORRECTIONS[name])
            return spec
        return None


class _Loader(importlib.abc.Loader):
    def __init__(self, loader, correct):
        self.loader = loader
        self.correct = correct

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        self.correct(module)

    def __getattr__(self, name):  # get_source and the like, for tracebacks
        return getattr(self.loader, name)


# ---- no GPU to measure or to ask


def do_bench(
    fn,
    warmup=25,
    rep=100,
    grad_to_none=None,
    quantiles=None,
    return_mode="mean",
):
    """Run `fn` once and return NaN (one for each quantile): there is no GPU to time."""
    fn()
    warnings.warn("no GPU: do_bench ran the function once and measured nothing (NaN)", stacklevel=2)
    if quantiles is not None:
        return [math.nan] * len(quantiles) if len(quantiles) > 1 else math.nan
    return [math.nan] if return_mode == "all" else math.nan


def _tune(kernel_call, quantiles=None):
    """What autotune times a configuration with: it runs, and all are equally good."""
    kernel_call()
    return [0.0] * len(quantiles) if quantiles else 0.0


class CPUDriver:
    """What triton.runtime.driver.active is: tensors live on the CPU."""

    def get_active_torch_device(self):
        import torch

        return torch.device("cpu")

    def get_current_target(self):
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cpu", 0, 0)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0

    def get_benchmarker(self):
        return _tune

    @property
    def utils(self):
        raise RuntimeError("there is no GPU: its properties cannot be asked for")


def _correct_driver(module):
    module.driver.set_active(CPUDriver())


def _correct_testing(module):
    module.do_bench = do_bench

    def do_bench_cudagraph(fn, rep=20, grad_to_none=None, quantiles=None, return_mode="mean"):
        return do_bench(fn, quantiles=quantiles, return_mode=return_mode)

    module.do_bench_cudagraph = do_bench_cudagraph


# ---- the interpreter


def _correct_interpreter(module):
    _correct_bfloat16(module)
    _check_pointers(module)


class _BFloat16:
    """bfloat16 values of the interpreter's: told apart, widened to float32 and rounded back."""

    def __init__(self, module):
        import triton.language as tl

        self.tl = tl
        self.handle = module.TensorHandle

    def is_one(self, handle):
        return isinstance(handle, self.handle) and handle.dtype.scalar == self.tl.bfloat16

    def up(self, handle):
        """bfloat16 values as float32: the same upper 16 bits."""
        if not self.is_one(handle):
            return handle
        data = (handle.data.astype(np.uint32) << 16).view(np.float32)
        return self.handle(data, self.tl.float32)

    def down(self, handle):
        """float32 values rounded to bfloat16, ties to even; NaN stays NaN."""
        if handle.data.dtype != np.float32:
            return self.handle(handle.data, self.tl.bfloat16)  # a comparison's result
        bits = np.ascontiguousarray(handle.data).view(np.uint32)
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        data = np.where(np.isnan(handle.data), 0x7FC0, rounded).astype(np.uint16)
        return self.handle(data.reshape(handle.data.shape), self.tl.bfloat16)

    def in_float32(self, original):
        """The interpreter's `original` operation, done in float32 for bfloat16 operands."""

        def operation(builder, *operands):
            if not any(map(self.is_one, operands)):
                return original(builder, *operands)
            result = original(builder, *map(self.up, operands))
            return self.down(result) if self.is_one(operands[0]) else result

        return operation

    def widened(self, tensor):
        """A tensor of float32 for one of bfloat16; any other as it is."""
        if not self.is_one(tensor.handle):
            return tensor
        kind = self.tl.block_type(self.tl.float32, list(tensor.shape))
        return self.tl.core.tensor(self.up(tensor.handle), kind)

    def narrowed(self, tensor):
        """A tensor of bfloat16 for one of float32."""
        kind = self.tl.bfloat16
        if tensor.shape:
            kind = self.tl.block_type(kind, list(tensor.shape))
        return self.tl.core.tensor(self.down(tensor.handle), kind)


def _correct_bfloat16(module):
    bf16 = _BFloat16(module)
    Builder = module.InterpreterBuilder
    names = "binary_op unary_op create_fma create_erf create_rsqrt create_idiv"
    for name in names.split():
        setattr(Builder, name, bf16.in_float32(getattr(Builder, name)))
    _correct_choice_and_dot(Builder, bf16)
    _correct_cast(Builder, bf16)
    _correct_reductions(module.ReduceScanOpInterface, bf16)
    _refuse_atomics(Builder, bf16)


def _correct_choice_and_dot(Builder, bf16):
    choose = Builder.ternary_op
    dot = Builder.create_dot
    other_ternary = bf16.in_float32(choose)

    def ternary_op(self, a, b, c, op):
        # np.where only picks values, so bfloat16's bits may stay as they are
        return (choose if op is np.where else other_ternary)(self, a, b, c, op)

    def create_dot(self, a, b, d, *options):
        return dot(self, bf16.up(a), bf16.up(b), d, *options)

    def get_bf16(self, value):
        return bf16.down(bf16.handle(np.array([value], np.float32), bf16.tl.float32))

    Builder.ternary_op = ternary_op
    Builder.create_dot = create_dot
    Builder.get_bf16 = get_bf16


def _correct_cast(Builder, bf16):
    cast = Builder.cast_impl
    tl = bf16.tl

    def cast_impl(self, source, to):
        is_bf16 = bf16.is_one(source)
        to_bf16 = to.scalar == tl.bfloat16
        if is_bf16 and not to_bf16:
            wide = bf16.up(source)
            return wide if to.scalar == tl.float32 else cast(self, wide, to)
        if to_bf16 and not is_bf16:
            is_float32 = source.data.dtype == np.float32
            return bf16.down(source if is_float32 else cast(self, source, tl.float32))
        return cast(self, source, to)

    Builder.cast_impl = cast_impl


def _correct_reductions(Interface, bf16):
    apply = Interface.apply

    def reduce_or_scan(self, tensors):
        if not isinstance(tensors, tuple):
            return reduce_or_scan(self, (tensors,))[0]
        was_bf16 = [bf16.is_one(tensor.handle) for tensor in tensors]
        if not any(was_bf16):
            return apply(self, tensors)
        results = []
        for i, result in enumerate(apply(self, tuple(map(bf16.widened, tensors)))):
            if result.dtype == bf16.tl.float32 and was_bf16[min(i, len(was_bf16) - 1)]:
                result = bf16.narrowed(result)
            results.append(result)
        return tuple(results)

    Interface.apply = reduce_or_scan


def _refuse_atomics(Builder, bf16):
    atomic = Builder.create_atomic_rmw

    def atomic_rmw(self, operation, pointers, values, mask, *options):
        if bf16.is_one(values):
            raise NotImplementedError(
                "atomics on bfloat16 are not available without a GPU: use float32"
            )
        return atomic(self, operation, pointers, values, mask, *options)

    Builder.create_atomic_rmw = atomic_rmw


class _Extents:
    """The memory of the running launch's arguments: (first byte, end) of each."""

    def __init__(self):
        self.of_launch = []

    def note(self, tensors):
        self.of_launch.clear()
        for tensor in tensors:
            storage = tensor.untyped_storage()
            first = storage.data_ptr()
            self.of_launch.append((first, first + storage.nbytes()))

    def check(self, what, pointers, mask):
        """IndexError for a pointer, where the mask is set, to outside of every argument."""
        addresses = pointers.data[np.broadcast_to(mask.data, pointers.data.shape)]
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        inside = np.zeros(addresses.shape, bool)
        for first, end in self.of_launch:
            inside |= (addresses >= first) & (addresses + np.uint64(size) <= end)
        if inside.all():
            return
        outside = int(addresses[~inside][0])

        def distance(extent):
            return min(abs(outside - extent[0]), abs(outside - extent[1]))

        first, end = min(self.of_launch, key=distance, default=(0, 0))
        raise IndexError(
            f"tl.{what} of {np.count_nonzero(~inside)} elements outside the arguments' memory; "
            f"the first is at element {(outside - first) // size} of a tensor of "
            f"{(end - first) // size}. Guard it with mask=."
        )


def _check_pointers(module):
    """Refuse loads and stores outside the memory of the kernel's tensor arguments."""
    Builder = module.InterpreterBuilder
    Executor = module.GridExecutor
    extents = _Extents()

    def tensors_of(value):
        if isinstance(value, tuple):
            for part in value:
                yield from tensors_of(part)
        elif hasattr(value, "base") and not hasattr(value, "data_ptr"):
            yield from tensors_of(value.base)
        elif hasattr(value, "data_ptr"):
            yield module._unwrap_tensor(value)

    to_host = Executor._init_args_hst

    def init_args(self, args, kwargs):
        on_host = to_host(self, args, kwargs)
        extents.note(tensors_of((*on_host[0], *on_host[1].values())))
        return on_host

    load = Builder.create_masked_load
    store = Builder.create_masked_store
    atomic = Builder.create_atomic_rmw

    def masked_load(self, pointers, mask, *options):
        extents.check("load", pointers, mask)
        return load(self, pointers, mask, *options)

    def masked_store(self, pointers, value, mask, *options):
        extents.check("store", pointers, mask)
        return store(self, pointers, value, mask, *options)

    def atomic_rmw(self, operation, pointers, values, mask, *options):
        extents.check("atomic", pointers, mask)
        return atomic(self, operation, pointers, values, mask, *options)

    Executor._init_args_hst = init_args
    Builder.create_masked_load = masked_load
    Builder.create_masked_store = masked_store
    Builder.create_atomic_rmw = atomic_rmw


_CORRECTIONS = {
    "triton.runtime.driver": _correct_driver,
    "triton.runtime.interpreter": _correct_interpreter,
    "triton.testing": _correct_testing,
}
