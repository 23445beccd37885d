"""Inside the candidate's process, on a GPU: how long a call takes.

The clock is the judge's: its functions are taken before the candidate is imported, each run has
fresh arrays with other values, the L2 cache is overwritten before it, and it has ended only when
the whole device has, whichever streams it used. Without a GPU the same steps run with the host's
clock, and nobody calls that a speed.
"""

import contextlib
import ctypes
import sys
import time

_now = time.perf_counter

FLUSH_BYTES = 256 << 20
WARM_UP = 3
PERSISTING_L2 = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE


class Host:
    """The host's clock, where everything runs at once."""

    def held(self):
        """How many bytes of the cache were set aside since this clock was made."""
        return 0

    def start(self):
        self.begin = _now()

    def stop(self):
        """(milliseconds until the call's own stream is done, until everything is)."""
        took = 1e3 * (_now() - self.begin)
        return took, took


class Device:
    """CUDA events on the current stream, and once more when the whole device is done."""

    def __init__(self):
        import torch

        self.event, self.synchronize = torch.cuda.Event, torch.cuda.synchronize
        self.elapsed = torch.cuda.Event.elapsed_time
        self.record, self.wait = torch.cuda.Event.record, torch.cuda.Event.synchronize
        properties = torch.cuda.get_device_properties(0)
        size = max(FLUSH_BYTES, 2 * getattr(properties, "L2_cache_size", 0))
        self.flush = torch.empty(size // 4, dtype=torch.float32, device="cuda")
        self.overwrite = torch.Tensor.fill_
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.at_first = self._set_aside()

    def _set_aside(self):
        """How many bytes of the L2 cache are set aside for data that stay."""
        found = ctypes.c_size_t()
        self.driver.cuCtxGetLimit(ctypes.byref(found), PERSISTING_L2)
        return found.value

    def held(self):
        """How many bytes of the cache were set aside since this clock was made."""
        return max(0, self._set_aside() - self.at_first)

    def start(self):
        self.synchronize()
        self.driver.cuCtxResetPersistingL2Cache()  # what is to stay there would outlast the flush
        self.overwrite(self.flush, 1.0)
        self.synchronize()  # another stream would begin while the cache is being overwritten
        self.first, self.last, self.whole = (self.event(enable_timing=True) for _ in range(3))
        self.record(self.first)

    def stop(self):
        self.record(self.last)
        self.wait(self.last)
        self.synchronize()
        self.record(self.whole)
        self.wait(self.whole)
        return self.elapsed(self.first, self.last), self.elapsed(self.first, self.whole)


def clock():
    """The clock of this process, made before the candidate comes."""
    return Device() if has_torch_on_a_gpu() else Host()


def context():
    """Have PyTorch make the context that a clock would, where nothing is timed: whatever loads a
    candidate finds every process as it is where it is timed.
    """
    if has_torch_on_a_gpu():
        with contextlib.suppress(RuntimeError):
            sys.modules["torch"].cuda.synchronize()


def has_torch_on_a_gpu():
    """Whether this process has imported PyTorch, and that has a GPU."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_available()


def samples(work, clock, sets, rounds, calls=1, warm_up=WARM_UP):
    """(milliseconds of each round, milliseconds until everything was done) of work(*arguments).

    sets: functions that give fresh arguments; each round takes the next, and makes `calls` calls.
    warm_up: calls before, which are not timed.
    """
    for _ in range(warm_up):
        work(*sets[0]())
    own, whole = [], []
    for number in range(rounds):
        arguments = sets[number % len(sets)]()
        clock.start()
        for _ in range(calls):
            work(*arguments)
        one, all_of_it = clock.stop()
        own.append(one)
        whole.append(all_of_it)
    return own, whole
