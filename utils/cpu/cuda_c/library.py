"""Kernels of a .cu file called from Python, on Python's memory (NumPy arrays, torch tensors)."""

import ctypes
from collections.abc import Sequence
from pathlib import Path

from .build import BuildError, build


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
        )
    ]


class Library:
    """The kernels of `source`, compiled for the CPU (once: the result is kept).

    `flags` are nvcc's. `instantiate` names what is wanted of templates, as in `["scale<float>"]`.
    `check` adds the slow checks. `kernels` holds the names that `launch` takes. Raises BuildError.
    """

    _stacks: int | None = None  # an address in the first library that was loaded

    def __init__(
        self,
        source: str | Path,
        *,
        flags: Sequence[str] = (),
        check: bool = False,
        instantiate: Sequence[str] = (),
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
        )
        self.path = path
        self.kernels: tuple[str, ...] = tuple(dict.fromkeys([*facts["kernels"], *instantiate]))
        self._library = ctypes.CDLL(str(output))
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
