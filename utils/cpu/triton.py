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
        self.loader, self.correct = loader, correct

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        self.correct(module)

    def __getattr__(self, name):  # get_source and the like, for tracebacks
        return getattr(self.loader, name)


# ---- no GPU to measure or to ask


def do_bench(fn, warmup=25, rep=100, grad_to_none=None, quantiles=None, return_mode="mean"):
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


def _correct_bfloat16(module):
    import triton.language as tl

    Handle, Builder = module.TensorHandle, module.InterpreterBuilder

    def is_bf16(handle):
        return isinstance(handle, Handle) and handle.dtype.scalar == tl.bfloat16

    def up(handle):
        """bfloat16 values as float32: the same upper 16 bits."""
        if not is_bf16(handle):
            return handle
        return Handle((handle.data.astype(np.uint32) << 16).view(np.float32), tl.float32)

    def down(handle):
        """float32 values rounded to bfloat16, ties to even; NaN stays NaN."""
        if handle.data.dtype != np.float32:
            return Handle(handle.data, tl.bfloat16)  # a comparison's result
        bits = np.ascontiguousarray(handle.data).view(np.uint32)
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        data = np.where(np.isnan(handle.data), 0x7FC0, rounded).astype(np.uint16)
        return Handle(data.reshape(handle.data.shape), tl.bfloat16)

    def in_float32(original):
        def operation(self, *operands):
            if not any(map(is_bf16, operands)):
                return original(self, *operands)
            result = original(self, *map(up, operands))
            return down(result) if is_bf16(operands[0]) else result

        return operation

    for name in (
        "binary_op",
        "unary_op",
        "create_fma",
        "create_erf",
        "create_rsqrt",
        "create_idiv",
    ):
        setattr(Builder, name, in_float32(getattr(Builder, name)))

    choose = Builder.ternary_op
    Builder.ternary_op = lambda self, a, b, c, op: (
        choose(self, a, b, c, op) if op is np.where else in_float32(choose)(self, a, b, c, op)
    )

    Builder.get_bf16 = lambda self, value: down(Handle(np.array([value], np.float32), tl.float32))

    dot = Builder.create_dot
    Builder.create_dot = lambda self, a, b, d, *options: dot(self, up(a), up(b), d, *options)

    cast = Builder.cast_impl

    def cast_impl(self, source, to):
        if is_bf16(source) and to.scalar != tl.bfloat16:
            return cast(self, up(source), to) if to.scalar != tl.float32 else up(source)
        if to.scalar == tl.bfloat16 and not is_bf16(source):
            return down(
                source if source.data.dtype == np.float32 else cast(self, source, tl.float32)
            )
        return cast(self, source, to)

    Builder.cast_impl = cast_impl

    apply = module.ReduceScanOpInterface.apply

    def reduce_or_scan(self, tensors):
        if not isinstance(tensors, tuple):
            return reduce_or_scan(self, (tensors,))[0]
        wide = [is_bf16(tensor.handle) for tensor in tensors]
        if not any(wide):
            return apply(self, tensors)
        promoted = tuple(
            tl.core.tensor(up(t.handle), tl.block_type(tl.float32, list(t.shape)) if bf else t.type)
            for t, bf in zip(tensors, wide, strict=True)
        )
        results = apply(self, promoted)
        return tuple(
            tl.core.tensor(
                down(r.handle),
                tl.block_type(tl.bfloat16, list(r.shape)) if r.shape else tl.bfloat16,
            )
            if r.dtype == tl.float32 and wide[min(i, len(wide) - 1)]
            else r
            for i, r in enumerate(results)
        )

    module.ReduceScanOpInterface.apply = reduce_or_scan

    atomic = Builder.create_atomic_rmw

    def atomic_rmw(self, operation, pointers, values, mask, *options):
        if is_bf16(values):
            raise NotImplementedError(
                "atomics on bfloat16 are not available without a GPU: use float32"
            )
        return atomic(self, operation, pointers, values, mask, *options)

    Builder.create_atomic_rmw = atomic_rmw


def _check_pointers(module):
    """Refuse loads and stores outside the memory of the kernel's tensor arguments."""
    Builder, Executor = module.InterpreterBuilder, module.GridExecutor
    extents = []  # (first byte, end) of each argument's memory, of the running launch

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
        extents.clear()
        for tensor in tensors_of((*on_host[0], *on_host[1].values())):
            storage = tensor.untyped_storage()
            extents.append((storage.data_ptr(), storage.data_ptr() + storage.nbytes()))
        return on_host

    Executor._init_args_hst = init_args

    def check(what, pointers, mask):
        addresses = pointers.data[np.broadcast_to(mask.data, pointers.data.shape)]
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        inside = np.zeros(addresses.shape, bool)
        for first, end in extents:
            inside |= (addresses >= first) & (addresses + np.uint64(size) <= end)
        if not inside.all():
            outside = int(addresses[~inside][0])
            near, end = min(
                extents,
                key=lambda extent: min(abs(outside - extent[0]), abs(outside - extent[1])),
                default=(0, 0),
            )
            raise IndexError(
                f"tl.{what} of {np.count_nonzero(~inside)} elements outside the arguments' memory; "
                f"the first is at element {(outside - near) // size} of a tensor of "
                f"{(end - near) // size}. Guard it with mask=."
            )

    load, store = Builder.create_masked_load, Builder.create_masked_store

    def masked_load(self, pointers, mask, *options):
        check("load", pointers, mask)
        return load(self, pointers, mask, *options)

    def masked_store(self, pointers, value, mask, *options):
        check("store", pointers, mask)
        return store(self, pointers, value, mask, *options)

    atomic = Builder.create_atomic_rmw

    def atomic_rmw(self, operation, pointers, values, mask, *options):
        check("atomic", pointers, mask)
        return atomic(self, operation, pointers, values, mask, *options)

    Builder.create_masked_load, Builder.create_masked_store = masked_load, masked_store
    Builder.create_atomic_rmw = atomic_rmw


_CORRECTIONS = {
    "triton.runtime.driver": _correct_driver,
    "triton.runtime.interpreter": _correct_interpreter,
    "triton.testing": _correct_testing,
}
