"""Kernels of a .cu file called from Python, on Python's memory (NumPy arrays, torch tensors)."""

import ctypes
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..turns import turn
from .build import BuildError, build

EVENT_FIELDS = 8  # of what a launch records


class LaunchError(RuntimeError):
    """A launch that failed; the message says which mistake, kernel, block, thread and line."""


class _Buffer(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("name", ctypes.c_char_p)]


class Counts(ctypes.Structure):
    """What the threads of a launch did: see `Library.counts`."""

    _fields_ = [
        (name, ctypes.c_ulonglong)
        for name in (
            "busiest",  # accesses to memory of the thread with the most
            "total",  # of all threads
            "shared",  # of these, to shared memory
            "barriers",  # of blocks
            "atomics",
            "meetings",  # of lanes of a warp: shuffles, votes, __syncwarp()
            "wide",  # stores of 16 bytes to global memory
            "global_bytes",
            "rewrites",  # of what another thread had written
            "partial",  # barriers that came after some threads had ended
            "shuffles",  # of the meetings
            "absent",  # reads by shuffles from lanes that took no part
            "heap",  # blocks from malloc or new in device code, not given back
            "heap_line",  # where the first of these was taken
            "wide_loads",  # of 16 bytes from global memory
            "sums",  # atomic operations that added more than one
            "polls",  # again at one place: atomic reads, additions of an integer 0
            "stored",  # a bit for each of the launch's `buffers`: whether it was stored to
            "products",  # of the meetings: of tensor cores, or their matrices' loads
            "most_stored",  # bytes of global memory that one thread has stored to, of who has most
            "lasting",  # what device variables hold that launches have stored to, hashed; 0: none
        )
    ]


def _loaded(output: Path) -> ctypes.CDLL:
    """A built library; BuildError for a function that is declared and nowhere defined."""
    try:
        return ctypes.CDLL(str(output))
    except OSError as error:
        _, is_missing, name = str(error).partition("undefined symbol: ")
        if not is_missing:
            raise
        log = f"error: Unresolved extern function '{name}'\n"  # as ptxas says it
        raise BuildError(log) from None


class Library:
    """The kernels of `source`, compiled for the CPU (once: the result is kept).

    `flags` are nvcc's. `instantiate` names what is wanted of templates, as in `["scale<float>"]`.
    `check` adds the slow checks. With `headers`, a folder with those of the C++ library that NVRTC
    has, what NVRTC would refuse is refused (`device_only.py`). `kernels` holds the names that
    `launch` takes. Raises BuildError.
    """

    _stacks: int | None = None  # an address in the first library that was loaded
    #: One launch at a time, of all libraries: each takes Ctrl-C for itself, and gives it back
    _turn = turn()

    def __init__(
        self,
        source: str | Path,
        *,
        flags: Sequence[str] = (),
        check: bool = False,
        instantiate: Sequence[str] = (),
        headers: Path | None = None,
    ):
        path = Path(source)
        if not path.is_file():
            raise BuildError(f"{path}: there is no such file\n")
        extra = "".join(
            f'\nstatic ::cuda_cpu::Registration cuda_cpu_instance_{i}(&{name}, "{name}");\n'
            for i, name in enumerate(instantiate)
        )
        output, facts = build(
            [str(path)],
            flags,
            check=check,
            shared=True,
            extra=extra,
            headers=headers,
        )
        self.path = path
        self.kernels: tuple[str, ...] = tuple(dict.fromkeys([*facts["kernels"], *instantiate]))
        self._library = _loaded(output)
        self._share_stacks()
        self._launch = self._library.cuda_cpu_launch
        self._launch.argtypes = [
            ctypes.c_char_p,  # kernel
            ctypes.POINTER(ctypes.c_uint),  # grid and block
            ctypes.c_size_t,  # bytes of dynamic shared memory
            ctypes.POINTER(ctypes.c_void_p),  # addresses of the arguments
            ctypes.c_int,
            ctypes.POINTER(_Buffer),  # memory behind the pointers
            ctypes.c_int,
            ctypes.c_char_p,  # room for a message
            ctypes.c_size_t,
        ]

    def _share_stacks(self) -> None:
        """All libraries of a process take the stacks of waiting threads from the first one."""
        share = self._library.cuda_cpu_share_stacks
        share.argtypes = [ctypes.c_void_p]
        share.restype = ctypes.c_void_p
        Library._stacks = share(Library._stacks)

    def counts(self) -> dict[str, int]:
        """What the last launch did, by the names of `Counts`. Only with `check`."""
        ask = self._library.cuda_cpu_counts
        ask.restype = Counts
        answer = ask()
        return {name: getattr(answer, name) for name, _ in Counts._fields_}

    def record(self, most: int) -> None:
        """From now on keep up to `most` events of each launch; 0: none. Only with `check`."""
        ask = self._library.cuda_cpu_record
        ask.argtypes = [ctypes.c_size_t]
        ask.restype = None
        ask(most)

    def recorded(self) -> np.ndarray:
        """The events of the last launch, one a row: see `runtime/checks_record.cpp`.

        Columns: kind (as `utils.tracer.record` numbers them), thread through the grid, address of
        the code, line (of a barrier or a meeting), whether in shared memory, address (or byte of
        the block's shared memory), bytes, and the bits of what was read.
        """
        ask = self._library.cuda_cpu_recorded
        ask.argtypes = [ctypes.POINTER(ctypes.c_size_t)]
        ask.restype = ctypes.c_void_p
        count = ctypes.c_size_t()
        address = ask(ctypes.byref(count))
        raw = ctypes.string_at(address, count.value * 8 * EVENT_FIELDS) if count.value else b""
        return np.frombuffer(raw, np.int64).reshape(-1, EVENT_FIELDS)

    def line_of(self, code: int) -> int:
        """The line of the source that an address of its code belongs to; 0: none."""
        ask = self._library.cuda_cpu_line
        ask.argtypes = [ctypes.c_void_p]
        return ask(code)

    def launch(
        self,
        kernel: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        params: Sequence,
        *,
        buffers: Sequence[tuple[int, int, str]] = (),
    ) -> None:
        """Runs `kernel` and returns when it is done.

        params: ctypes objects of the exact types of the kernel's parameters, pointers as c_void_p
            to host memory.
        buffers: (address, bytes, name) of the memory behind the pointers, so that an access out of
            bounds names the argument.
        Raises LaunchError for every mistake in the kernel, KeyboardInterrupt when interrupted.
        """
        shape = (ctypes.c_uint * 6)(*grid, *block)
        addresses = (ctypes.c_void_p * max(1, len(params)))(*(ctypes.addressof(p) for p in params))
        ranges = (_Buffer * max(1, len(buffers)))(
            *((a, n, name.encode()) for a, n, name in buffers)
        )
        message = ctypes.create_string_buffer(8192)
        with Library._turn:
            status = self._launch(
                kernel.encode(),
                shape,
                shared_bytes,
                addresses,
                len(params),
                ranges,
                len(buffers),
                message,
                len(message),
            )
        if status == 1:
            raise LaunchError(message.value.decode(errors="replace").strip())
        if status == 2:
            raise KeyboardInterrupt
        if status == 3:
            raise LaunchError(
                f"{self.path} has no kernel '{kernel}'; it has {', '.join(self.kernels) or 'none'}"
            )
