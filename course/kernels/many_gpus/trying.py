"""The all-reduce kernels tried in one process: on GPUs, or on the CPU runtime.

Where as many devices as ranks reach each other, each rank's kernel runs on its own; else all ranks
run as one grid. Both prove that a kernel is right, and say nothing about its speed.
"""

import numpy as np

from course.kernels.many_gpus import communicator as comm
from course.kernels.many_gpus.communicator import Choice
from utils.engine import has_gpu

LAUNCH = {
    "blocks": 2,
    "threads": 64,
    "unroll": 1,
}


def all_reduce(
    algorithm: str,
    arrays: list[np.ndarray],
    **launch,
) -> list[np.ndarray]:
    """What every rank has after an all-reduce of float32 arrays, one a rank.

    Each rank has a device of its own where so many reach each other, else all run as one grid.
    algorithm: one of choices.ALGORITHMS. launch: blocks, threads, unroll.
    """
    ranks, count = len(arrays), arrays[0].size
    bytes = 4 * count
    make, run = comm.together, comm.all_reduce_together
    if comm.library().comm_devices() >= ranks:
        make, run = comm.apart, comm.all_reduce_apart
    communicators = make(
        ranks,
        heap=2 * bytes + 1024,
        scratch=bytes + 1024,
    )
    places = [c.address(c.allocate(bytes)) for c in communicators]
    try:
        for place, array in zip(places, arrays, strict=True):
            _copy(place, np.ascontiguousarray(array, np.float32).ctypes.data, bytes)
        choice = Choice(algorithm, **{**LAUNCH, **launch})
        run(communicators, places, places, count, 0, choice)
        results = [np.empty(count, np.float32) for _ in arrays]
        for place, result in zip(places, results, strict=True):
            _copy(result.ctypes.data, place, bytes)
        for communicator in communicators:
            communicator.check()
        return results
    finally:
        for communicator in communicators:
            communicator.close()


def _copy(to, source, bytes):
    library = comm.library()
    if not library.comm_copy(to, source, bytes, None):
        raise comm.CommunicatorError(library.comm_error().decode())


def call_alone(ranks: int = 2, patience: float = 0.3) -> str:
    """What is said when only rank 0 of several calls an all-reduce."""
    import ctypes

    communicators = comm.together(
        ranks,
        heap=1024,
        scratch=1024,
        patience=patience,
    )
    first = communicators[0]
    place = first.address(first.allocate(64))
    _copy(place, np.zeros(16, np.float32).ctypes.data, 64)
    how = ctypes.byref(Choice("one_shot", blocks=1, threads=32).how(0))
    comm.library().comm_all_reduce(
        first._communicator,
        place,
        place,
        16,
        how,
        None,
    )
    try:
        first.check()
        return "no time-out"
    except comm.CommunicatorError as error:
        return str(error)
    finally:
        for communicator in communicators:
            communicator.close()


def gpus() -> int:
    """How many GPUs there are that PyTorch may use; 0 where a CPU engine takes their place."""
    import torch

    return torch.cuda.device_count() if has_gpu() else 0
