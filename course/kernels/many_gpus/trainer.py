"""The finale's trainer on many GPUs: each rank trains on its own part of every batch.

    with ParallelTrainer(communicator, weights, batch=4096, lr=0.1) as trainer:
        for images, labels in batches_of_this_rank:      # uint8, in pinned host memory
            trainer.step(images, labels)                 # returns at once
        print(trainer.losses()[-1])                      # the mean over all ranks

All ranks make the same calls. Each takes the step with the mean of the ranks' gradients, summed in
the order of the ranks, so the weights stay the same bits everywhere.

    statistics=True    batch norms use the sums over all ranks' digits: a step is that of one GPU
                       on the whole batch. False: each rank's own, as PyTorch's DDP does
    bucket=True        the first linear layer's gradient, 95 % of all bytes, is exchanged as soon
                       as it is there, beside the convolutions' backward pass. False: at the end
"""

import ctypes
import functools
from pathlib import Path

import numpy as np

from course.kernels.many_gpus import build
from course.kernels.many_gpus.communicator import Communicator, Peers
from course.kernels.mnist_cnn import check_weights, fast

SOURCE = Path(__file__).parent / "kernels" / "trainer.cu"
STATISTICS, BUCKET = 1, 2


class Site(ctypes.Structure):
    """A place for one kind of exchange: kernels/exchange.cuh, struct Site."""

    _fields_ = [
        ("counters", ctypes.c_size_t),
        ("words", ctypes.c_size_t),
        ("slots", ctypes.c_int),
    ]


class Sites(ctypes.Structure):
    """All of the trainer's: kernels/trainer.cu, struct Sites."""

    _fields_ = [(name, Site) for name in ("update", "moments", "forward", "backward")]


class ParallelTrainer(fast.Trainer):
    """One rank's trainer. batch: digits a rank and step; the other options are fast.Trainer's."""

    def __init__(
        self,
        communicator: Communicator,
        weights: dict[str, np.ndarray],
        batch: int,
        lr: float,
        precision: str = "bf16",
        *,
        statistics: bool = True,
        bucket: bool = True,
        graph: bool = True,
        gradients: bool = False,
    ):
        self._trainer = None
        check_weights(weights)
        self._library = library(precision)
        self.communicator, self.ranks = communicator, communicator.size
        self.batch, self.lr, self.precision = batch, lr, precision
        self._gradients = gradients
        self.steps = 0
        self._in_use = [None, None]
        options = fast.Options(graph=graph, keep_gradients=gradients)
        together = STATISTICS * statistics + BUCKET * bucket
        self._mark = communicator.mark()
        peers, sites = communicator.peers(), self._sites()
        communicator.group.all_gather(None)  # everyone's counters are at zero
        self._create(fast.pack(weights), options, peers, sites, together)

    def _create(self, packed, options, peers, sites, together) -> None:
        """Streams, memory and graphs of this rank."""
        self._trainer = self._library.together_create(
            self.batch,
            self.lr,
            ctypes.byref(options),
            packed.ctypes.data,
            ctypes.byref(peers),
            ctypes.byref(sites),
            together,
        )
        if not self._trainer:
            raise fast.TrainerError(self._error())

    def _sites(self) -> Sites:
        """Memory for the exchanges, at the same offsets on every rank."""
        lib, sites = self._library, Sites()
        blocks = lib.together_blocks()
        for number, (name, _) in enumerate(Sites._fields_):
            site = getattr(sites, name)
            count = lib.together_slots(min(number, 1))  # the update's, then the sums'
            site.slots = -(-count // 32) * 32
            site.counters = self._cleared(4 * blocks)
            site.words = self._cleared(2 * self.ranks * site.slots * 32)
        return sites

    def _cleared(self, bytes) -> int:
        import torch

        offset = self.communicator.allocate(bytes)
        zeros = torch.zeros(bytes, dtype=torch.uint8)
        address = self.communicator.address(offset)
        self.communicator._call_plain(
            "comm_copy",
            address,
            zeros.data_ptr(),
            bytes,
            None,
        )
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return offset

    def step(self, images, labels) -> None:
        """Start one training step on this rank's part of a batch, and return at once."""
        self._call(
            "together_step",
            fast._address(images, self.batch * 784),
            fast._address(labels, self.batch),
        )
        self._in_use[self.steps % 2] = images, labels
        self.steps += 1

    def gradients(self) -> dict[str, np.ndarray]:
        """The last step's gradients by name: the mean over the ranks."""
        sums = super().gradients()
        return {name: value / self.ranks for name, value in sums.items()}

    def close(self) -> None:
        """Free the trainer's memory, when all ranks have done their steps."""
        if self._trainer:
            self._library.together_destroy(self._trainer)
            self.communicator.release(self._mark)
        self._trainer = None


@functools.cache
def library(precision: str) -> ctypes.CDLL:
    """kernels/trainer.cu, compiled and loaded."""
    path = build.library(SOURCE, fast.PRECISIONS[precision])
    lib = ctypes.CDLL(str(path))
    pointer, number = ctypes.c_void_p, ctypes.c_int
    signatures = {
        "cnn_error": (ctypes.c_char_p, []),
        "cnn_parameter_bytes": (ctypes.c_size_t, []),
        "cnn_synchronize": (number, [pointer]),
        "cnn_infer": (number, [pointer, pointer, number, pointer]),
        "cnn_weights": (number, [pointer] * 2),
        "cnn_gradients": (number, [pointer] * 2),
        "cnn_losses": (number, [pointer] * 2),
        "cnn_logits": (number, [pointer] * 2),
        "together_slots": (number, [number]),
        "together_blocks": (number, []),
        "together_sizes": (ctypes.c_size_t, [number]),
        "together_create": (
            pointer,
            [number, ctypes.c_float, pointer, pointer, pointer, pointer, number],
        ),
        "together_destroy": (None, [pointer]),
        "together_step": (number, [pointer] * 3),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    sizes = (
        (fast.LAYOUT.itemsize, lib.cnn_parameter_bytes()),
        (ctypes.sizeof(Peers), lib.together_sizes(0)),
        (ctypes.sizeof(Sites), lib.together_sizes(1)),
    )
    if any(here != there for here, there in sizes):
        raise fast.TrainerError("trainer.cu and trainer.py disagree on a struct's layout")
    return lib
