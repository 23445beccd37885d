"""What the server can serve: name -> (runner, tokenizer), for a cache of so many blocks."""

import torch

from course.kernels.language_model.problem import TOY, weights
from course.kernels.language_model.serving.runner import ChecksumRunner, PyTorchRunner, Runner
from course.kernels.language_model.serving.text import ByteTokens, Tokens


def toy(blocks: int) -> tuple[Runner, Tokens]:
    """The smallest model, with random weights, in float32."""
    return PyTorchRunner(TOY, weights(TOY, dtype=torch.float32), blocks), ByteTokens()


def checksum(blocks: int) -> tuple[Runner, Tokens]:
    """No model at all, for tests of everything around it."""
    return ChecksumRunner(blocks), ByteTokens()


MODELS = {"toy": toy, "checksum": checksum}
