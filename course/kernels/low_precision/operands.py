"""What kernels are given: an address says neither of how many numbers it is nor of which type."""

import torch

ALIGNED = 16  # bytes: what the widest loads take


def expect(device: torch.device, **operands) -> None:
    """Raise ValueError unless all tensors are as a kernel reads or writes them.

    operands: name=(tensor, dtype, *shape).
    """
    for name, (tensor, *wanted) in operands.items():
        found = [tensor.dtype, *tensor.shape]
        whole = tensor.is_contiguous() and tensor.data_ptr() % ALIGNED == 0
        if found != wanted or tensor.device != device or not whole:
            place = f"on {device}, contiguous, from a multiple of {ALIGNED} bytes on"
            raise ValueError(
                f"{name} is {_text(found)} on {tensor.device}, but must be {_text(wanted)} {place}"
            )


def _text(kind: list) -> str:
    dtype, *shape = kind
    return f"{str(dtype).removeprefix('torch.')} {shape}"
