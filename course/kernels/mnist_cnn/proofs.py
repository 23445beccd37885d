"""How the chapter proves a gradient right, and how it runs a kernel to compare it.

`by_autograd` and `by_differences` are the two proofs; `Prover` holds a NumPy layer to both.
"""

import inspect

import numpy as np
import torch
from IPython.display import Markdown
from numba import cuda

from utils import check

#: Batch, channels in and out, height, width: odd batches, awkward pictures.
SHAPES = ((1, 1, 1, 5, 7), (3, 2, 5, 9, 4), (7, 3, 4, 6, 6))


def by_autograd(function, dy, *inputs):
    """Gradients of sum(function(*inputs) * dy), by PyTorch in float64."""
    tensors = [
        torch.tensor(
            a,
            dtype=torch.float64,
            requires_grad=True,
        )
        for a in inputs
    ]
    loss = (function(*tensors) * torch.tensor(dy)).sum()
    loss.backward()
    return [tensor.grad.numpy() for tensor in tensors]


def by_differences(function, dy, inputs, which, index, h=1e-5):
    """The slope of the same sum, when one number of one input changes."""

    def loss(change):
        moved = [a.astype(float) for a in inputs]
        moved[which][index] += change
        return (function(*moved) * dy).sum()

    return (loss(h) - loss(-h)) / (2 * h)


class Prover:
    """Holds gradients to both proofs. rng: where it draws the places for finite differences."""

    def __init__(self, rng: np.random.Generator):
        self.rng = rng

    def __call__(
        self,
        name,
        ours,
        torch_function,
        gradients,
        dy,
        *inputs,
        places=6,
    ):
        """Gradients of `ours`, a NumPy function, with respect to each of `inputs`.

        torch_function: the same in PyTorch. dy: the gradient behind it. places: how many numbers of
        each input are changed. Raises CheckError where a gradient is wrong.
        """
        exact = by_autograd(torch_function, dy, *inputs)
        for which, (mine, theirs) in enumerate(zip(gradients, exact, strict=True)):
            what = f"{name}, gradient {which}"
            check.close(
                mine,
                theirs,
                rtol=1e-9,
                atol=1e-9,
                name=f"{what}, against autograd",
                quiet=True,
            )
            spots = [self._place(mine.shape) for _ in range(places)]
            slopes = [by_differences(ours, dy, inputs, which, spot) for spot in spots]
            at_spots = np.array([mine[spot] for spot in spots])
            check.close(
                at_spots,
                np.array(slopes),
                rtol=1e-5,
                atol=1e-6,
                name=f"{what}, against finite differences",
                quiet=True,
            )
        size = " × ".join(map(str, inputs[0].shape))
        print(f"✓ {name}, {size}: gradients agree with autograd and with finite differences")

    def _place(self, shape) -> tuple:
        return tuple(self.rng.integers(0, side) for side in shape)


def launch(kernel, shape, *args, blocks=None, dtype=np.float32):
    """The result of a kernel: one thread for each of its (poisoned) elements, or so many blocks."""
    out = cuda.to_device(check.poison(shape, dtype))
    elements = int(np.prod(shape))
    grid = blocks or (elements + 255) // 256
    kernel[grid, 256](out, *args)
    return out.copy_to_host()


def to_gpu(*arrays):
    """Each array as float32 on the GPU."""
    return [cuda.to_device(a.astype(np.float32)) for a in arrays]


def exact(*arrays):
    """Each array as float64, for the reference."""
    return [a.astype(float) for a in arrays]


def single(*arrays):
    """Each array as float32: what the kernels see."""
    return [a.astype(np.float32) for a in arrays]


def show(*functions) -> Markdown:
    """The source of functions, from the files where they are."""
    sources = [inspect.getsource(function).rstrip() for function in functions]
    return Markdown("```python\n" + "\n\n".join(sources) + "\n```")
