"""The all-reduce kernels tried in one process: on GPUs, or on the CPU runtime.

Where as many GPUs as ranks reach each other, each rank's kernel runs on its own; else all ranks run
as one grid. Both prove that a kernel is right, and say nothing about its speed. Kernels that the
learner changed are tried as they left them (`utils.tools.yours`).
"""

import ctypes
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from course.kernels import trying
from course.kernels.many_gpus import communicator as comm
from course.kernels.many_gpus.choices import ALGORITHMS, Choice
from utils import cuda_c, has_gpu
from utils.tools import yours

TOGETHER = comm.SOURCE.with_name("together.cu")
TWO_RANKS = comm.SOURCE.with_name("two_ranks.cu")
RING_OF_BLOCKS = comm.SOURCE.with_name("ring_of_blocks.cu")
BLOCKS, THREADS = 2, 64
SECOND = 10**9  # nanoseconds

Sums = list[np.ndarray]


def all_reduce(
    algorithm: str,
    arrays: list[np.ndarray],
    *,
    blocks: int = BLOCKS,
    threads: int = THREADS,
) -> Sums:
    """What every rank has after an all-reduce of float32 arrays, one a rank.

    algorithm: one of choices.ALGORITHMS. All but one_shot and two_shot take multiples of four
    numbers. A rank that waits for another in vain raises CommunicatorError.
    """
    arrays = [np.ascontiguousarray(array, np.float32) for array in arrays]
    if gpus() >= len(arrays):
        try:
            return apart(algorithm, arrays, blocks=blocks, threads=threads)
        except comm.CannotReach:
            pass
    return together(algorithm, arrays, blocks=blocks, threads=threads)


# ---- all ranks in one grid


@yours.cache
def one_grid() -> cuda_c.Module:
    """kernels/together.cu, compiled."""
    return cuda_c.load(TOGETHER)


def together(
    algorithm: str,
    arrays: Sums,
    *,
    blocks: int = BLOCKS,
    threads: int = THREADS,
    callers: int | None = None,
    patience: float = comm.PATIENCE,
) -> Sums:
    """The same with all ranks in one grid. callers: only so many ranks make the call.

    patience: seconds that a rank waits for another, before CommunicatorError says for whom.
    """
    ranks, count = len(arrays), arrays[0].size
    kernels = one_grid()
    sizes = np.zeros(3, np.int64)
    kernels.layout[1, 1](sizes, ranks, count)
    first, sums, size = map(int, sizes)
    memory = np.zeros((ranks, size), np.uint8)
    memory[:, first : first + 4 * count] = np.stack(arrays).view(np.uint8)
    kernels.all_reduce[(blocks, ranks), threads](
        memory.reshape(-1),
        ranks,
        count,
        ALGORITHMS.index(algorithm),
        int(patience * SECOND),
        ranks if callers is None else callers,
    )
    for rank, bytes in enumerate(memory):
        failure = comm.Failure.from_buffer_copy(bytes[: ctypes.sizeof(comm.Failure)])
        comm.raise_for(failure, rank)
    return [bytes[sums : sums + 4 * count].view(np.float32).copy() for bytes in memory]


def call_alone(ranks: int = 2, patience: float = 0.3) -> str:
    """What is said when only rank 0 of several calls an all-reduce."""
    arrays = [np.zeros(16, np.float32) for _ in range(ranks)]
    try:
        together("one_shot", arrays, blocks=1, threads=32, callers=1, patience=patience)
        return "no time-out"
    except comm.CommunicatorError as error:
        return str(error)


# ---- each rank on a device of its own


def apart(
    algorithm: str,
    arrays: Sums,
    *,
    blocks: int = BLOCKS,
    threads: int = THREADS,
) -> Sums:
    """The same with a device for each rank. CannotReach where fewer reach each other."""
    ranks, count = len(arrays), arrays[0].size
    bytes = 4 * count
    communicators = comm.apart(ranks, heap=2 * bytes + 1024, scratch=bytes + 1024)
    places = [c.address(c.allocate(bytes)) for c in communicators]
    try:
        for place, array in zip(places, arrays, strict=True):
            _copy(place, array.ctypes.data, bytes)
        choice = Choice(algorithm, blocks, threads, unroll=1)
        comm.all_reduce_apart(communicators, places, places, count, 0, choice)
        results = [np.empty(count, np.float32) for _ in arrays]
        for place, result in zip(places, results, strict=True):
            _copy(result.ctypes.data, place, bytes)
        return results
    finally:
        for communicator in communicators:
            communicator.close()


def _copy(to, source, bytes):
    library = comm.library()
    if not library.comm_copy(to, source, bytes, None):
        raise comm.CommunicatorError(library.comm_error().decode())


# ---- a block for each rank, by the learner's kernels


def exchange(arrays: Sums, mine: Mapping[str, Path]) -> np.ndarray:
    """The sum of two ranks' float32 arrays, which a kernel of two blocks makes.

    mine: the learner's files by exercise, as `exercises.solved_files` gives them. Theirs is run
    where it is solved, and the course's else; it is said which.
    """
    numbers = _flat(arrays)
    count = numbers.shape[1]
    sums = np.empty_like(numbers)
    inbox = np.zeros(numbers.shape, np.uint64)
    kernels = _theirs("many_gpus.exchange", mine, TWO_RANKS)
    kernels.exchange[2, THREADS](sums, numbers, inbox, 1, count)
    return _same_sum(sums).reshape(arrays[0].shape)


def ring(arrays: Sums, mine: Mapping[str, Path]) -> np.ndarray:
    """The sum of the ranks' float32 arrays by a ring of blocks; the ranks divide an array."""
    numbers = _flat(arrays)
    ranks, count = numbers.shape
    arrived, flags = np.empty_like(numbers), np.zeros(ranks, np.uint32)
    kernels = _theirs("many_gpus.ring", mine, RING_OF_BLOCKS)
    kernels.ring[ranks, THREADS](numbers, arrived, flags, count)
    return _same_sum(numbers).reshape(arrays[0].shape)


def _flat(arrays):
    return np.stack([np.asarray(array, np.float32).reshape(-1) for array in arrays])


def _theirs(exercise, mine, file):
    own = mine.get(exercise)
    print(f"[yours: {own}]" if own else "[the course's kernel: yours, once it is solved]")
    return cuda_c.load(own or file)


def _same_sum(sums):
    """The one array that all ranks have. CommunicatorError where they differ."""
    if not all(np.array_equal(sums[0], other) for other in sums):
        raise comm.CommunicatorError("the ranks have not got the same sums")
    return sums[0]


# ---- as it stands now


def tried(algorithm: str, ranks: int = 4, count: int = 512) -> None:
    """Say whether an all-reduce is right as it stands now, and gives every rank the same bits.

    Without a GPU the CPU runtime's slow checks watch, and name a mistake with its line.
    """
    random = np.random.default_rng(ranks)
    arrays = [random.normal(size=count).astype(np.float32) for _ in range(ranks)]
    sums = []

    def compute():
        # first a longer message: there a flag that comes too early overtakes tiles
        together(algorithm, [np.tile(array, 2 * ranks) for array in arrays], patience=2)
        sums[:] = together(algorithm, arrays, patience=2)
        return np.stack(sums)

    exact = np.broadcast_to(np.sum(arrays, axis=0, dtype=np.float64), (ranks, count))
    trying.tried(compute, exact, one_grid)
    if sums:
        same = all(np.array_equal(sums[0], other) for other in sums)
        print(f"all ranks have the same bits: {'yes' if same else 'no'}")


def gpus() -> int:
    """How many GPUs there are that PyTorch may use; 0 where a CPU engine takes their place."""
    import torch

    return torch.cuda.device_count() if has_gpu() else 0
