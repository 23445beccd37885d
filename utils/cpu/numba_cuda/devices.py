"""How many devices the engine plays, which is current, and whose kernels may reach whose memory.

As in Numba the current device belongs to the host thread. All devices are this computer's CPU.
"""

import os
import threading

from .errors import CudaAPIError

VARIABLE = "CUDA_CPU_DEVICES"  # how many devices, read when they are first asked for
MOST = 16
EVERYWHERE = -1  # the owner of memory that all devices may use: mapped, managed

_current = threading.local()
_peers: set[tuple[int, int]] = set()  # (device, owner of the memory)
_count: int | None = None


def play(count: int) -> None:
    """Play `count` devices from now on; forgets who may reach whom."""
    global _count
    _count = _checked(count)
    _current.device = 0
    _peers.clear()


def count() -> int:
    """How many devices there are: what `play` said, CUDA_CPU_DEVICES, or 1."""
    global _count
    if _count is None:  # not by `play`: another host thread may have allowed something since
        _count = _checked(int(os.environ.get(VARIABLE) or 1))
    return _count


def _checked(count: int) -> int:
    if not 1 <= count <= MOST:
        raise ValueError(f"1 to {MOST} devices can be played, not {count}")
    return count


def current() -> int:
    """The number of this host thread's device."""
    return getattr(_current, "device", 0)


def select(device: int) -> None:
    """Make a device current. CudaAPIError where there is none of this number."""
    check(device)
    _current.device = device


def enter(device: int) -> None:
    """Make a device current until `leave`, in this host thread."""
    before = current()
    select(device)
    _outer().append(before)


def leave() -> None:
    """What was current before the last `enter` is so again."""
    _current.device = _outer().pop()


def _outer() -> list[int]:
    """The devices that were current in this host thread outside of its `with`s."""
    if not hasattr(_current, "outer"):
        _current.outer = []
    return _current.outer


def check(device: int) -> None:
    """CudaAPIError for a number that no device has."""
    if not 0 <= device < count():
        raise CudaAPIError(
            101,
            "Call to cuDeviceGet results in CUDA_ERROR_INVALID_DEVICE: there is no device "
            f"{device}, the numbers end at {count() - 1}",
        )


def may_reach(device: int, owner: int) -> bool:
    """Whether kernels of `device` may use memory of `owner`."""
    return owner in (device, EVERYWHERE) or (device, owner) in _peers


def allow(device: int, owner: int) -> None:
    """Let kernels of `device` use memory of `owner`. CudaAPIError when they may already."""
    check(owner)
    if device == owner:
        raise CudaAPIError(
            101,
            "Call to cuCtxEnablePeerAccess results in CUDA_ERROR_INVALID_DEVICE: a device needs no "
            "permission for its own memory",
        )
    if (device, owner) in _peers:
        raise CudaAPIError(
            704,
            "Call to cuCtxEnablePeerAccess results in CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
        )
    _peers.add((device, owner))


def forbid(device: int, owner: int) -> None:
    """Take the permission back. CudaAPIError where there was none."""
    if (device, owner) not in _peers:
        raise CudaAPIError(
            705, "Call to cuCtxDisablePeerAccess results in CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"
        )
    _peers.remove((device, owner))
