"""What the server can serve: name -> (runner, tokenizer), for a cache of so many blocks."""

import torch

from course.kernels.language_model import carried
from course.kernels.language_model.problem import TOY
from course.kernels.language_model.problem import weights as random_weights
from course.kernels.language_model.rightness import DEVICE
from course.kernels.language_model.serving.kernel_runner import KernelRunner
from course.kernels.language_model.serving.runner import ChecksumRunner, PyTorchRunner, Runner
from course.kernels.language_model.serving.text import ByteTokens, Tokens
from utils import has_gpu


def toy(blocks: int) -> tuple[Runner, Tokens]:
    """The smallest model, with random weights, in float32."""
    return PyTorchRunner(TOY, random_weights(TOY, dtype=torch.float32), blocks), ByteTokens()


def trained(blocks: int) -> tuple[Runner, Tokens]:
    """The model that the course carries, in float32; on a GPU by the course's kernels."""
    config, weights, tokens = carried.model(device=DEVICE)
    kind = KernelRunner if has_gpu() else PyTorchRunner
    return kind(config, weights, blocks), tokens


def checksum(blocks: int) -> tuple[Runner, Tokens]:
    """No model at all, for tests of everything around it."""
    return ChecksumRunner(blocks), ByteTokens()


MODELS = {"trained": trained, "toy": toy, "checksum": checksum}
