"""Streams, events and devices: what the host calls beside kernels and arrays."""

import contextlib
import functools
import time

from . import devices
from .errors import CudaAPIError


class Stream:
    """A queue of work. Everything here is done at once, so there is nothing to wait for."""

    handle = 0

    def __init__(self, name="stream", device_id=None):
        self.name = name
        self.device_id = device_id  # None: of whichever device is current

    def synchronize(self):
        """Return once all work of the stream is done: it is."""

    @contextlib.contextmanager
    def auto_synchronize(self):
        yield self

    def add_callback(self, callback, arg=None):
        """Call callback(stream, status, arg) once the work queued so far is done: now."""
        callback(self, 0, arg)

    async def async_done(self):
        return self

    def __int__(self):
        return 0

    def __repr__(self):
        return f"<{self.name} of the CPU engine>"


_default, _legacy, _per_thread = (
    Stream("default stream"),
    Stream("legacy default stream"),
    Stream("thread's stream"),
)


def stream():
    """A new stream of the current device."""
    return Stream(device_id=devices.current())


def default_stream():
    return _default


def legacy_default_stream():
    return _legacy


def per_thread_default_stream():
    return _per_thread


def external_stream(ptr):
    raise NotImplementedError("there are no GPU streams on this machine")


class Event:
    """A moment in a stream, by the host's clock: CPU time, never a GPU's."""

    def __init__(self, timing=True):
        self.timing = timing
        self.time = None

    def record(self, stream=0):
        self.time = time.perf_counter()

    def synchronize(self):
        pass

    def query(self):
        return True

    def wait(self, stream=0):
        pass

    def elapsed_time(self, other):
        """Milliseconds from this event to `other`."""
        return event_elapsed_time(self, other)


def event(timing=True):
    return Event(timing)


def event_elapsed_time(start, end):
    """Milliseconds between two recorded events."""
    if not (start.timing and end.timing) or start.time is None or end.time is None:
        raise CudaAPIError(
            400,
            "Call to cuEventElapsedTime results in CUDA_ERROR_INVALID_HANDLE: both events must "
            "be made with timing=True and recorded",
        )
    return (end.time - start.time) * 1e3


class Device:
    """A device that the engine plays: limits of compute capability 9.0, speed of a CPU.

    With `with cuda.gpus[1]:` it is current inside.
    """

    name = b"CPU engine (no GPU)"
    compute_capability = (9, 0)
    uuid = "CPU-engine"
    supports_float16 = True
    supports_bfloat16 = False
    supports_fp8 = False
    COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = compute_capability
    MULTIPROCESSOR_COUNT = 4
    WARP_SIZE = 32
    MAX_THREADS_PER_BLOCK = 1024
    MAX_THREADS_PER_MULTIPROCESSOR = 2048
    MAX_BLOCK_DIM_X = 1024
    MAX_BLOCK_DIM_Y = 1024
    MAX_BLOCK_DIM_Z = 64
    MAX_GRID_DIM_X = 2**31 - 1
    MAX_GRID_DIM_Y = 65535
    MAX_GRID_DIM_Z = 65535
    MAX_SHARED_MEMORY_PER_BLOCK = 48 * 1024
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 227 * 1024
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 228 * 1024
    MAX_REGISTERS_PER_BLOCK = 65536
    MAX_REGISTERS_PER_MULTIPROCESSOR = 65536
    TOTAL_CONSTANT_MEMORY = 65536
    UNIFIED_ADDRESSING = MANAGED_MEMORY = CONCURRENT_KERNELS = COOPERATIVE_LAUNCH = (
        CAN_MAP_HOST_MEMORY
    ) = 1
    ASYNC_ENGINE_COUNT = 1
    INTEGRATED = ECC_ENABLED = KERNEL_EXEC_TIMEOUT = TCC_DRIVER = 0
    PCI_DEVICE_ID = PCI_DOMAIN_ID = 0

    def __init__(self, id=0):
        self.id = self.PCI_BUS_ID = id

    def get_primary_context(self):
        return _context(self.id)

    def reset(self):
        pass

    def __enter__(self):
        devices.enter(self.id)
        return _context(self.id)

    def __exit__(self, *_):
        devices.leave()

    def __getattr__(self, name):
        if name.isupper():
            raise AttributeError(f"the CPU engine has no {name}: it is a property of a real GPU")
        raise AttributeError(name)

    def __repr__(self):
        return f"<CUDA device {self.id} 'CPU engine (no GPU)'>"


class Context:
    """The context of a device: memory figures are the host's."""

    def __init__(self, device):
        self.device = device
        self.handle = self  # what Numba's enable_peer_access takes

    def can_access_peer(self, peer_device):
        """Whether this device could be allowed to use that one's memory: all but its own."""
        devices.check(int(peer_device))
        return int(peer_device) != self.device.id

    def enable_peer_access(self, peer_context, flags=0):
        """Let kernels of this device use memory of that one: a context or its handle."""
        devices.allow(self.device.id, peer_context.device.id)

    def disable_peer_access(self, peer_context):
        """Take that back."""
        devices.forbid(self.device.id, peer_context.device.id)

    def synchronize(self):
        pass

    def get_memory_info(self):
        """(free, total) bytes of host memory."""
        import collections
        import os

        page = os.sysconf("SC_PAGE_SIZE")
        total = page * os.sysconf("SC_PHYS_PAGES")
        try:
            free = page * os.sysconf("SC_AVPHYS_PAGES")
        except (ValueError, OSError):  # macOS does not say
            free = total
        return collections.namedtuple("MemoryInfo", "free total")(free, total)

    def reset(self):
        pass

    def create_stream(self):
        return Stream(device_id=self.device.id)

    def create_event(self, timing=True):
        return Event(timing)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@functools.cache
def _device(number):
    return Device(number)


@functools.cache
def _context(number):
    return Context(_device(number))


class DeviceList:
    """cuda.gpus"""

    @property
    def lst(self):
        return [_device(number) for number in range(devices.count())]

    @property
    def current(self):
        return _device(devices.current())

    def __getitem__(self, index):
        return self.lst[index]

    def __len__(self):
        return devices.count()

    def __iter__(self):
        return iter(self.lst)

    def __str__(self):
        return ", ".join(map(str, self.lst))


gpus = DeviceList()


def select_device(device_id=0):
    """Make a device current in this host thread; returns it."""
    devices.select(device_id)
    return gpus.current


def get_current_device():
    return gpus.current


def current_context(device_id=None):
    """The context of the current device, or of the one that is named."""
    return _context(devices.current() if device_id is None else device_id)


def list_devices():
    return gpus


def detect():
    """Print what devices there are; returns whether one is supported."""
    print(f"Found {len(gpus)} CUDA devices")
    for device in gpus:
        print(f"id {device.id}    {device.name.decode():>20} {'[CPU ENGINE]':>40}")
    print(f"{'GPU':>40}: none; kernels run on this machine's CPU")
    print(f"Summary:\n\t0/{len(gpus)} devices are GPUs")
    return True


def is_available():
    """Whether kernels can run: they can, on the CPU."""
    return True


def is_supported_version():
    return True


def is_float16_supported():
    return True


def is_bfloat16_supported():
    return False


def is_fp8_supported():
    return False


def cuda_error():
    return None


def synchronize():
    """Return once all work is done: it is."""


def close():
    pass


def require_context(function):
    return function


def profile_start():
    pass


def profile_stop():
    pass


@contextlib.contextmanager
def profiling():
    yield


@contextlib.contextmanager
def defer_cleanup():
    yield
