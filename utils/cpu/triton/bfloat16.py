"""bfloat16 in Triton's interpreter, which computes with its bits as if they were integers.

Here such operations are done in float32 and rounded back, as the GPU does.
"""

import numpy as np


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


def correct_bfloat16(module):
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
        return dot(
            self,
            bf16.up(a),
            bf16.up(b),
            d,
            *options,
        )

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
