"""What the server can serve: name -> (runner, tokenizer), for a cache of so many blocks."""

import torch

from course.kernels.language_model import carried
from course.kernels.language_model.problem import TOY
from course.kernels.language_model.problem import weights as random_weights
from course.kernels.language_model.serving.runner import ChecksumRunner, PyTorchRunner, Runner
from course.kernels.language_model.serving.text import ByteTokens, Tokens


def toy(blocks: int) -> tuple[Runner, Tokens]:
    """The smallest model, with random weights, in float32."""
    return PyTorchRunner(TOY, random_weights(TOY, dtype=torch.float32), blocks), ByteTokens()


def trained(blocks: int) -> tuple[Runner, Tokens]:
    """The model that the course carries, in float32."""
    config, weights, tokens = carried.model()
    return PyTorchRunner(config, weights, blocks), tokens


def checksum(blocks: int) -> tuple[Runner, Tokens]:
    """No model at all, for tests of everything around it."""
    return ChecksumRunner(blocks), ByteTokens()


MODELS = {"trained": trained, "toy": toy, "checksum": checksum}
