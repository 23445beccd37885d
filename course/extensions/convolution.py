"""A convolution of ours as an operator that a PyTorch model can use.

The digits network's second convolution runs on the kernels of its training step
(course.kernels.mnist_cnn.conv2), every other shape on those of course.kernels.convolution.
"""

import torch

from course.kernels.convolution import implicit
from course.kernels.convolution.shapes import Convolution
from course.kernels.mnist_cnn import conv2

SIDE = 3  # taps of a filter, each way


def conv3x3(x: torch.Tensor, w: torch.Tensor, special: bool = True) -> torch.Tensor:
    """3×3 convolution, padding 1, no bias, on tensor cores: bfloat16 (before Ampere float16).

    x: [n, c, h, w], w: [k, c, 3, 3], c and k multiples of 8. They are used as channels-last, and
    copied if they lie otherwise. special: may the digits' shape use the kernels made for it?
    Returns [n, k, h, w], channels-last.
    """
    return torch.ops.course_convolution.conv3x3(x, w, special)


@torch.library.custom_op("course_convolution::conv3x3", mutates_args=())
def forward(x: torch.Tensor, w: torch.Tensor, special: bool = True) -> torch.Tensor:
    check(x, w)
    y = empty(x, w.shape[0])
    if special and is_of_the_digits(x, w):
        run(conv2.forward, y, x, w)
    else:
        launch("forward", y, x, w, problem(x, w))
    return y


@torch.library.custom_op("course_convolution::conv3x3_backward", mutates_args=())
def backward(
    dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, special: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    check(x, w)
    dx = empty(x, x.shape[1])
    dw = torch.empty_like(w, memory_format=torch.channels_last)
    if special and is_of_the_digits(x, w):
        run(conv2.data_gradient, dx, dy, w)
        run(conv2.weights_gradient, dw, dy, x)
    else:
        launch("data_gradient", dx, dy, w, problem(x, w))
        launch_weights_gradient(dw, dy, x, problem(x, w))
    return dx, dw


@forward.register_fake
def _(x, w, special=True):
    return empty(x, w.shape[0])


@backward.register_fake
def _(dy, x, w, special):
    return empty(x, x.shape[1]), torch.empty_like(w, memory_format=torch.channels_last)


def keep(ctx, inputs, output):
    x, w, ctx.special = inputs
    ctx.save_for_backward(x, w)


def gradients(ctx, dy):
    backward = torch.ops.course_convolution.conv3x3_backward
    return *backward(dy, *ctx.saved_tensors, ctx.special), None


torch.library.register_autograd("course_convolution::conv3x3", gradients, setup_context=keep)


class Conv3x3(torch.nn.Conv2d):
    """nn.Conv2d(c, k, 3, padding=1, bias=False), computed by these kernels."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__(inputs, outputs, SIDE, padding=1, bias=False)

    def forward(self, x):
        number = implicit.sixteen_bits()
        return conv3x3(x.to(number), self.weight.to(number)).to(x.dtype)


# ---- launches


def check(x, w) -> None:
    """Raises TypeError or ValueError for what the kernels cannot do."""
    number = implicit.sixteen_bits()
    if x.dtype != number or w.dtype != number:
        raise TypeError(f"x and w must be {number}, not {x.dtype} and {w.dtype}")
    if x.ndim != 4 or w.shape[1:] != (x.shape[1], SIDE, SIDE):
        raise ValueError(f"x {list(x.shape)} and w {list(w.shape)}: not a 3×3 convolution")
    if x.shape[1] % 8 or w.shape[0] % 8:
        raise ValueError("the channels must be multiples of 8, before and after")


def is_of_the_digits(x, w) -> bool:
    """Is this the shape, and the type, that the training step's kernels are made for?"""
    image = conv2.INPUTS, conv2.SIDE, conv2.SIDE
    weights = conv2.OUTPUTS, conv2.INPUTS, SIDE, SIDE
    fits = x.shape[1:] == image and w.shape == weights
    return fits and x.dtype == torch.bfloat16 and len(x) > 0


def empty(x, channels):
    """Like x, with so many channels, channels-last."""
    n, _, height, width = x.shape
    return torch.empty(
        (n, channels, height, width),
        dtype=x.dtype,
        device=x.device,
        memory_format=torch.channels_last,
    )


def problem(x, w) -> Convolution:
    n, c, height, width = x.shape
    return Convolution(
        n=n,
        c=c,
        h=height,
        w=width,
        k=w.shape[0],
    )


def run(compute, out, first, second) -> None:
    """One of conv2's functions on PyTorch's stream. Tensors go as NHWC, which they are."""
    arrays = [channels_last(tensor) for tensor in (out, first, second)]
    with torch.cuda.device_of(out):
        compute(*arrays, stream_of(out))


def launch(kernel: str, out, first, second, conv: Convolution) -> None:
    """One of implicit.cu's kernels on PyTorch's stream. Tensors go as NHWC, which they are."""
    rows = {
        "forward": (conv.n * conv.p * conv.q, conv.k),
        "data_gradient": (conv.n * conv.h * conv.w, conv.c),
    }
    arrays = [channels_last(tensor) for tensor in (out, first, second)]
    with torch.cuda.device_of(out):
        run = getattr(implicit.module(), kernel)
        grid = implicit._grid(*rows[kernel])
        run[grid, implicit.THREADS, 0, stream_of(out)](*arrays, implicit.sizes_of(conv))


def launch_weights_gradient(dw, dy, x, conv: Convolution) -> None:
    """The weights' gradient, many parts of the pixels at the same time."""
    arrays = channels_last(dy), channels_last(x)
    flat = channels_last(dw).view(conv.k, -1)
    with torch.cuda.device_of(dw):
        implicit.weights_gradient_in_parts(flat, *arrays, conv, stream_of(dw))


def stream_of(tensor) -> int:
    """PyTorch's current stream on a GPU tensor's device; 0 on the CPU."""
    return torch.cuda.current_stream().cuda_stream if tensor.is_cuda else 0


def channels_last(x):
    """The numbers of [n, c, h, w] in memory's order [n, h, w, c], not copied if they lie so."""
    return x.contiguous(memory_format=torch.channels_last).permute(0, 2, 3, 1)
