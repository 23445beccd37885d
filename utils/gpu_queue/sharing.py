"""How the learners of a class share the GPUs of one machine: memory, slices (MIG), one context for
all (MPS).

Each learner's kernel is a process with a context of its own: what breaks in one harms no other, and
the GPU runs them by turns of some milliseconds. Three things are not kept apart by that. Times,
which the queue is for. Memory, of which frameworks can be told to take a share and plain
allocations cannot: those of Numba, CUDA C and cuda-core. And the whole GPU, for whoever runs a
kernel without end (the driver ends none on a server).

MIG cuts a GPU into slices with memory and multiprocessors of their own: nothing is shared then, and
each slice has a queue of its own. MPS does the contrary: it runs all processes in one scheduler, so
kernels overlap, and an illegal access of one learner ends the kernels of all who run at that moment
(NVIDIA, Multi-Process Service, section Error Containment). It is not for a class that learns from
mistakes.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import psutil

from utils.gpu_queue.entry import FOLDER

#: Bytes that a process takes of a GPU before it allocates anything, about
CONTEXT = 512 << 20
#: Bytes below which a learner's share is too small for the chapters' sizes
ENOUGH = 1 << 30
#: Programs of MPS
MPS = ("nvidia-cuda-mps-control", "nvidia-cuda-mps-server")


@dataclass(frozen=True)
class Slice:
    """What one process can be given: a GPU, or a part of one.

    uuid: as CUDA_VISIBLE_DEVICES takes it. memory: bytes.
    """

    uuid: str
    name: str
    memory: int


@dataclass(frozen=True)
class Card:
    """One GPU of this machine. mig: whether it is cut into slices. exclusive: whether it takes one
    process only.
    """

    whole: Slice
    mig: bool = False
    exclusive: bool = False
    slices: tuple[Slice, ...] = field(default=())

    @property
    def parts(self) -> tuple[Slice, ...]:
        """What learners can be given of it."""
        return self.slices if self.mig else (self.whole,)


def cards() -> tuple[Card, ...]:
    """The GPUs of this machine, as NVML lists them; empty without a driver."""
    with _nvml() as nvml:
        if nvml is None:
            return ()
        return tuple(_card(nvml, index) for index in range(nvml.nvmlDeviceGetCount()))


@contextmanager
def _nvml() -> Iterator[ModuleType | None]:
    """NVIDIA's management library, or None."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no library, or no driver: there are errors of several kinds
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def _card(nvml: ModuleType, index: int) -> Card:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    whole = _slice(nvml, handle)
    exclusive = _asked(nvml.nvmlDeviceGetComputeMode, handle) not in (
        None,
        nvml.NVML_COMPUTEMODE_DEFAULT,
    )
    mode = _asked(nvml.nvmlDeviceGetMigMode, handle)
    if mode is None or mode[0] != nvml.NVML_DEVICE_MIG_ENABLE:
        return Card(whole, exclusive=exclusive)
    return Card(whole, mig=True, exclusive=exclusive, slices=tuple(_slices(nvml, handle)))


def _slices(nvml: ModuleType, handle: object) -> Iterator[Slice]:
    """The slices of a GPU that is cut."""
    for number in range(_asked(nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
        part = _asked(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, number)
        if part is not None:
            yield _slice(nvml, part)


def _slice(nvml: ModuleType, handle: object) -> Slice:
    memory = nvml.nvmlDeviceGetMemoryInfo(handle).total
    return Slice(nvml.nvmlDeviceGetUUID(handle), nvml.nvmlDeviceGetName(handle), memory)


def _asked(question: Callable[..., Any], *of: object) -> Any:
    """NVML's answer, or None where a GPU or a driver has none."""
    import pynvml

    try:
        return question(*of)
    except pynvml.NVMLError:
        return None


def mps_runs() -> bool:
    """Whether the daemon or a server of MPS runs on this machine."""
    return any(process.info["name"] in MPS for process in psutil.process_iter(["name"]))


# ---- a learner's part


def environment(
    number: int, learners: int, folder: str, found: Sequence[Card] | None = None
) -> dict[str, str]:
    """The variables of a learner's server: which part of which GPU they use, and how much of its
    memory frameworks may take.

    number: of the learner, from 0. learners: of the class. folder: the queue's. found: `cards()`,
    unless given. Without a GPU, or with MIG on and no slice made, only the queue's variable.
    """
    variables = {FOLDER: folder}
    parts = [part for card in (cards() if found is None else found) for part in card.parts]
    if not parts:
        return variables
    part = parts[number % len(parts)]
    fraction = share(part, neighbours(number, learners, len(parts)))
    fraction = max(fraction, min(ENOUGH / part.memory, 1))  # seldom all of a class work at once
    # as the pinned PyTorch knows it; one that does not know the word stops with an error
    variables["PYTORCH_ALLOC_CONF"] = f"per_process_memory_fraction:{fraction:.3f}"
    variables["CUPY_GPU_MEMORY_LIMIT"] = f"{fraction:.1%}"
    variables["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    variables["CUDA_VISIBLE_DEVICES"] = part.uuid
    return variables


def neighbours(number: int, learners: int, parts: int) -> int:
    """How many learners share the part of learner `number`, where all are dealt out in turn."""
    place = number % parts
    return max(1, (learners - place + parts - 1) // parts)


def share(part: Slice, learners: int) -> float:
    """Which fraction of a part's memory each of so many learners may allocate."""
    left = max(part.memory - learners * CONTEXT, 0)
    return left / learners / part.memory


# ---- in words


def lines(
    learners: int, found: Sequence[Card] | None = None, mps: bool | None = None
) -> Iterator[str]:
    """What an instructor should know of this machine's GPUs, a line each."""
    found = cards() if found is None else found
    if not found:
        yield "No NVIDIA GPU: everything runs on the CPU engines, and nothing needs to be shared."
        return
    for card in found:
        yield f"{card.whole.name}, {_gigabytes(card.whole.memory)}: {_said(card)}"
    parts = [part for card in found for part in card.parts]
    if parts:
        yield from _shares(parts, learners)
    if mps_runs() if mps is None else mps:
        yield (
            "MPS runs: an illegal access of one learner ends the kernels of all others. End it for "
            "the class: echo quit | nvidia-cuda-mps-control"
        )


def _said(card: Card) -> str:
    """How one GPU is shared."""
    if card.exclusive:
        return "takes one process only; change that: nvidia-smi -c DEFAULT"
    if card.mig and not card.slices:
        return (
            "MIG is on, without any slice: nvidia-smi mig -lgip lists them, -cgi ... -C makes them"
        )
    if card.mig:
        return f"{len(card.slices)} slices (MIG), each with memory and a queue of its own"
    return "one queue for what is timed; what is not timed runs by turns of milliseconds"


def _shares(parts: Sequence[Slice], learners: int) -> Iterator[str]:
    """How much memory each learner has."""
    most = neighbours(0, learners, len(parts))
    smallest = min(parts, key=lambda part: part.memory)
    bytes_each = share(smallest, most) * smallest.memory
    each = f"{learners} learners: at most {most} on each of {len(parts)}"
    yield f"{each}, with {_gigabytes(bytes_each)} of memory for each of them."
    if bytes_each < ENOUGH:
        few = max(1, int(smallest.memory / (ENOUGH + CONTEXT))) * len(parts)
        yield f"That is too little for the chapters' sizes: {few} learners fit; others use the CPU."


def _gigabytes(count: float) -> str:
    return f"{count / (1 << 30):.1f} GiB"
