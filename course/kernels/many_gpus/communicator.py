"""All-reduce and peer copies by our own kernels (kernels/), called from Python.

    communicator = Communicator(group, heap=1 << 30)     # every rank of the group does this
    x = communicator.empty(1 << 20)                      # a tensor that the other GPUs can reach
    x.copy_(...)
    communicator.all_reduce(x)                           # in place, on torch's current stream

`group` says who the ranks are: rank, size, and all_gather(object), see launch.py. Where there is no
GPU, `together` makes the communicators of several ranks in one process, on the CPU runtime.
"""

import ctypes
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from course.kernels.many_gpus import build
from course.kernels.many_gpus.choices import Choice, How, choose
from utils.tools import yours
from utils.tools.diagnostics import LearnerError

SOURCE = Path(__file__).parent / "kernels" / "communicator.cu"
MOST_RANKS, THREADS = 8, 512
ALIGNMENT = 256
PATIENCE = 20.0  # seconds that a kernel waits for another rank before it gives up
WAITS = {1: "data words", 2: "a flag"}  # what a kernel can have waited for


class CommunicatorError(LearnerError):
    """A communicator cannot be made, a call was refused, or a rank did not answer."""


class CannotReach(CommunicatorError):
    """There are fewer devices that reach each other than ranks."""


class Failure(ctypes.Structure):
    """Why a kernel gave up: kernels/peers.cuh, struct Failure."""

    _fields_ = [
        ("code", ctypes.c_uint),
        ("peer", ctypes.c_uint),
        ("block", ctypes.c_uint),
        ("value", ctypes.c_uint),
    ]


class Peers(ctypes.Structure):
    """What a kernel knows of the other ranks: kernels/peers.cuh, struct Peers."""

    _fields_ = [
        ("rank", ctypes.c_int),
        ("ranks", ctypes.c_int),
        ("patience", ctypes.c_ulonglong),
        ("words", ctypes.c_size_t),
        ("scratch", ctypes.c_size_t),
        ("scratch_bytes", ctypes.c_size_t),
        ("base", ctypes.c_void_p * MOST_RANKS),
    ]


class Communicator:
    """One rank's communicator.

    group: rank, size, all_gather(object) -> list of every rank's object. heap: bytes for `empty`.
    scratch: bytes for what the peers send; (n - 1) / n of the longest message (default: the heap's
    size). patience: seconds that a kernel waits for another rank. All ranks must give the same
    sizes. Raises CommunicatorError where memory is too small or the GPUs cannot reach each other.
    """

    def __init__(
        self,
        group,
        heap: int,
        scratch: int | None = None,
        patience: float = PATIENCE,
    ):
        self._communicator = None
        if group.size > MOST_RANKS:
            raise CommunicatorError(f"the kernels are written for {MOST_RANKS} ranks at most")
        self._library = library()
        self.rank, self.size, self.group = group.rank, group.size, group
        self.heap = heap
        scratch = heap if scratch is None else scratch
        self._communicator = self._library.comm_create(
            group.rank, group.size, scratch, heap, patience
        )
        if not self._communicator:
            raise CommunicatorError(self._error())
        self._next = self._library.comm_heap(self._communicator)  # offset of the next `allocate`
        self._end = self._next + heap
        self._first = self.address(self._next)
        self._last = self.address(self._end)
        self._plans = {}

    def connect(self) -> "Communicator":
        """Map the other ranks' memory, as processes do."""
        handle = ctypes.create_string_buffer(64)
        self._call("comm_handle", handle)
        for rank, other in enumerate(self.group.all_gather(handle.raw)):
            if rank != self.rank:
                self._call("comm_open", rank, other)
        self.group.all_gather(None)  # nobody sends before everyone has mapped
        return self

    # ---- memory ----------------------------------------------------------------------------------

    def allocate(self, bytes: int) -> int:
        """Offset of so many bytes of this communicator's memory, the same on every rank.

        All ranks must allocate alike. The memory is not cleared, and is freed with the
        communicator.
        """
        offset = self._next
        if offset + bytes > self._end:
            raise CommunicatorError(
                f"{bytes:,} bytes are asked for, {self._end - offset:,} of {self.heap:,} are left"
            )
        self._next = -(-(offset + bytes) // ALIGNMENT) * ALIGNMENT
        return offset

    def address(
        self,
        offset: int,
        rank: int | None = None,
    ) -> int:
        """Where a rank's memory at an offset is mapped in this process."""
        rank = self.rank if rank is None else rank
        return self._library.comm_base(self._communicator, rank) + offset

    def empty(self, count: int, dtype=None):
        """A torch tensor [count] (float32 unless told otherwise) that the other GPUs can reach."""
        import torch

        dtype = dtype or torch.float32
        bytes = count * dtype.itemsize
        raw = _Memory(self.address(self.allocate(bytes)), bytes)
        return torch.as_tensor(raw, device="cuda").view(dtype)

    def mark(self) -> int:
        """Where the next allocation will be, for `release`."""
        return self._next

    def release(self, mark: int) -> None:
        """Give back what was allocated since `mark`."""
        self._next = mark

    def peers(self) -> Peers:
        """What kernels of other libraries take."""
        peers = Peers()
        if self._library.comm_peers_bytes() != ctypes.sizeof(Peers):
            raise CommunicatorError("communicator.py and peers.cuh disagree on struct Peers")
        self._library.comm_peers(self._communicator, ctypes.byref(peers))
        return peers

    # ---- work ------------------------------------------------------------------------------------

    def all_reduce(
        self,
        tensor,
        choice: Choice | None = None,
        out=None,
    ) -> None:
        """Sum the ranks' tensors in place or into `out`; returns at once, on torch's stream.

        tensor: contiguous, float32 or bfloat16, the same size on all ranks. Up to 2 MiB it may lie
        anywhere, on all ranks; longer ones must come from `empty`, and short ones from there are
        faster. CommunicatorError where it begins in the middle of 16 bytes, as x[1:] may.
        """
        import torch

        count, source = tensor.numel(), tensor.data_ptr()
        target = source if out is None else out.data_ptr()
        anywhere = not (self._has(source) and self._has(target))
        key = count, tensor.dtype, choice, anywhere
        how = self._plans.get(key)
        if how is None:
            how = self._plans[key] = self._plan(tensor, choice, anywhere)
        stream = torch._C._cuda_getCurrentRawStream(tensor.device.index)  # current_stream() is slow
        if not self._library.comm_all_reduce(
            self._communicator, target, source, count, how, stream
        ):
            raise CommunicatorError(self._error())

    def _has(self, address) -> bool:
        """Does an address lie in the memory that the other ranks can reach?"""
        return self._first <= address < self._last

    def _plan(self, tensor, choice, anywhere) -> How:
        import torch

        kinds = {
            torch.float32: 0,
            torch.bfloat16: 1,
        }
        if tensor.dtype not in kinds or not tensor.is_contiguous():
            raise CommunicatorError("all_reduce takes contiguous float32 or bfloat16 tensors")
        bytes = tensor.numel() * tensor.element_size()
        choice = choice or choose(bytes, self.size, anywhere)
        return ctypes.byref(choice.how(kinds[tensor.dtype]))

    def copy(
        self,
        to: int,
        source: int,
        bytes: int,
        *,
        kernel: tuple[int, int] | None = None,
    ):
        """Copy between two mapped addresses: by a copy engine, or a kernel of (blocks, threads)."""
        import torch

        stream = torch.cuda.current_stream().cuda_stream
        if kernel is None:
            self._call_plain("comm_copy", to, source, bytes, stream)
        else:
            self._call_plain("comm_copy_kernel", to, source, bytes, *kernel, stream)

    def ping_pong(
        self,
        peer: int,
        rounds: int,
        begins: bool,
        time: int,
    ) -> None:
        """A word goes to and fro `rounds` times; nanoseconds to the device address `time`."""
        import torch

        stream = torch.cuda.current_stream().cuda_stream
        self._call("comm_ping_pong", peer, rounds, begins, time, stream)

    def check(self) -> None:
        """Wait for the work so far. Raises CommunicatorError when a kernel gave up waiting."""
        failure = Failure()
        self._call("comm_failure", ctypes.byref(failure))
        raise_for(failure, self.rank)

    def reset(self) -> None:
        """Begin anew after a failure: all ranks call, and messages that were under way are lost.

        What kernels of other libraries count in this memory (the trainer's sites) is not touched.
        """
        self.group.all_gather(None)  # nobody's kernels run any more
        self._call("comm_reset")
        self.group.all_gather(None)

    def close(self) -> None:
        """Give the memory back, when no other rank uses it any more."""
        if self._communicator:
            self._library.comm_destroy(self._communicator)
        self._communicator = None

    def _call(self, function, *arguments):
        if not getattr(self._library, function)(self._communicator, *arguments):
            raise CommunicatorError(self._error())

    def _call_plain(self, function, *arguments):
        if not getattr(self._library, function)(*arguments):
            raise CommunicatorError(self._error())

    def _error(self) -> str:
        return self._library.comm_error().decode()


class _Memory:
    """Bytes of device memory as torch takes them, without a copy."""

    def __init__(self, address, bytes):
        self.__cuda_array_interface__ = {
            "shape": (bytes,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


def raise_for(failure: Failure, rank: int) -> None:
    """CommunicatorError if a kernel of this rank gave up waiting: for whom, and for what."""
    if failure.code:
        raise CommunicatorError(
            f"rank {rank} waited in vain for {WAITS[failure.code]} of rank {failure.peer} "
            f"(block {failure.block}, number {failure.value}). Did all ranks make the same "
            "calls in the same order?"
        )


# ---- ranks in one process ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Alone:
    """A group for communicators that are made by one process."""

    rank: int
    size: int


def together(
    ranks: int,
    heap: int,
    scratch: int | None = None,
    patience: float = PATIENCE,
):
    """The communicators of several ranks in one process and on one device: to try the kernels."""
    groups = [_Alone(rank, ranks) for rank in range(ranks)]
    communicators = [Communicator(group, heap, scratch, patience) for group in groups]
    _introduce(communicators)
    return communicators


def _introduce(communicators):
    """Tell each communicator of a process where the others' memory is."""
    for mine in communicators:
        for other in communicators:
            if other is not mine:
                mine._call("comm_open_pointer", other.rank, other.address(0))


def all_reduce_together(
    communicators, outs, sources, count: int, kind: int, choice: Choice
) -> None:
    """Run one all-reduce of all ranks as one grid, on addresses of device memory, and wait."""
    lib, n = library(), len(communicators)
    addresses = ctypes.c_void_p * n
    handles = addresses(*(c._communicator for c in communicators))
    outs, sources = addresses(*outs), addresses(*sources)
    how = ctypes.byref(choice.how(kind))
    if not lib.comm_all_reduce_together(handles, outs, sources, count, how):
        raise CommunicatorError(lib.comm_error().decode())


# ---- ranks that are threads, each with a device of its own ---------------------------------------


def apart(
    ranks: int,
    heap: int,
    scratch: int | None = None,
    patience: float = PATIENCE,
):
    """The communicators of several ranks in one process, rank r's memory on device r.

    Raises CannotReach where there are fewer devices that reach each other.
    """
    lib = library()
    if lib.comm_devices() < ranks:
        raise CannotReach(
            f"{ranks} ranks need as many devices that reach each other, not {lib.comm_devices()}"
        )
    communicators = []
    for rank in range(ranks):
        if not lib.comm_use_device(rank):
            raise CommunicatorError(lib.comm_error().decode())
        communicators.append(Communicator(_Alone(rank, ranks), heap, scratch, patience))
    _introduce(communicators)
    return communicators


def all_reduce_apart(
    communicators,
    outs,
    sources,
    count: int,
    kind: int,
    choice: Choice,
) -> None:
    """Run one all-reduce, every rank's kernel launched by a thread of its own, and wait."""
    lib, how = library(), ctypes.byref(choice.how(kind))

    def rank(mine, out, source):
        launched = lib.comm_use_device(mine.rank) and lib.comm_all_reduce(
            mine._communicator, out, source, count, how, None
        )
        if not launched:
            raise CommunicatorError(mine._error())
        mine.check()

    with ThreadPoolExecutor(len(communicators)) as pool:
        list(pool.map(rank, communicators, outs, sources))


# ---- the library ---------------------------------------------------------------------------------


@yours.cache
def library() -> ctypes.CDLL:
    """kernels/communicator.cu, compiled and loaded; with what the learner changed in its files."""
    lib = ctypes.CDLL(str(build.library(SOURCE)))
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    signatures = {
        "comm_error": (ctypes.c_char_p, []),
        "comm_create": (pointer, [number, number, size, size, ctypes.c_double]),
        "comm_destroy": (None, [pointer]),
        "comm_handle": (number, [pointer, pointer]),
        "comm_open": (number, [pointer, number, ctypes.c_char_p]),
        "comm_open_pointer": (number, [pointer, number, pointer]),
        "comm_base": (pointer, [pointer, number]),
        "comm_heap": (size, [pointer]),
        "comm_peers_bytes": (size, []),
        "comm_peers": (None, [pointer, pointer]),
        "comm_reset": (number, [pointer]),
        "comm_failure": (number, [pointer, pointer]),
        "comm_all_reduce": (number, [pointer, pointer, pointer, size, pointer, pointer]),
        "comm_all_reduce_together": (number, [pointer, pointer, pointer, size, pointer]),
        "comm_use_device": (number, [number]),
        "comm_devices": (number, []),
        "comm_copy": (number, [pointer, pointer, size, pointer]),
        "comm_copy_kernel": (number, [pointer, pointer, size, number, number, pointer]),
        "comm_ping_pong": (number, [pointer, number, number, number, pointer, pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib
