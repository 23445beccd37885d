"""What PyTorch must know of an operator besides its kernels: the same for each route to it."""

import torch


def complete(namespace: str) -> None:
    """Register fake kernels, gradients, batching and autocast for a namespace's two operators.

    They exist already: `polynomial(Tensor x, float a, float b, float c) -> Tensor` and
    `polynomial_backward(Tensor dy, Tensor x, float a, float b) -> Tensor`.
    """
    operators = getattr(torch.ops, namespace)
    _register_fakes(namespace)
    _register_gradients(namespace, operators)
    _register_batches(namespace, operators)
    for device in ("cpu", "cuda"):
        # x² leaves float16's range soon, so autocast computes it in float32
        torch.library.register_autocast(f"{namespace}::polynomial", device, torch.float32)


def _register_fakes(namespace):
    """What comes out, said without computing it: shape, type, strides, device."""

    @torch.library.register_fake(f"{namespace}::polynomial")
    def fake(x, a, b, c):
        return torch.empty_like(x)

    @torch.library.register_fake(f"{namespace}::polynomial_backward")
    def fake_backward(dy, x, a, b):
        return torch.empty_like(x)


def _register_gradients(namespace, operators):
    """dx = dy · (2 a x + b); and of that, again, by dy and by x."""

    def keep(ctx, inputs, output):
        x, ctx.a, ctx.b, _ = inputs
        ctx.save_for_backward(x)

    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return operators.polynomial_backward(dy, x, ctx.a, ctx.b), None, None, None

    def keep_twice(ctx, inputs, output):
        dy, x, ctx.a, ctx.b = inputs
        ctx.save_for_backward(dy, x)

    def backward_twice(ctx, ddx):
        dy, x = ctx.saved_tensors
        by_slope = operators.polynomial_backward(ddx, x, ctx.a, ctx.b)
        return by_slope, 2 * ctx.a * ddx * dy, None, None

    register = torch.library.register_autograd
    register(f"{namespace}::polynomial", backward, setup_context=keep)
    register(f"{namespace}::polynomial_backward", backward_twice, setup_context=keep_twice)


def _register_batches(namespace, operators):
    """vmap: each element stands for itself, so a batch is only one axis more."""

    @torch.library.register_vmap(f"{namespace}::polynomial")
    def batch(info, in_dims, x, a, b, c):
        return operators.polynomial(x, a, b, c), in_dims[0]

    @torch.library.register_vmap(f"{namespace}::polynomial_backward")
    def batch_backward(info, in_dims, dy, x, a, b):
        dy, x = (
            tensor.movedim(axis, 0)
            if axis is not None
            else tensor.expand(info.batch_size, *tensor.shape)
            for tensor, axis in zip((dy, x), in_dims, strict=False)
        )
        return operators.polynomial_backward(dy, x, a, b), 0
