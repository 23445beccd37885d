"""cuda.jit: makes a kernel of a Python function, checks its launches, runs them on the engine."""

import functools
import inspect
import itertools
import numbers
import types as pytypes

import numpy as np

from ... import sizes
from . import devices, fibres, namespace, settings
from .arguments import argument, cast_to, kind_of, kind_of_type, match, type_of
from .diagnose import explain
from .engine import Launch
from .errors import CudaAPIError, KernelError
from .expressions import of_argument
from .host import Stream, get_current_device
from .kernel_api import DYNAMIC_SHARED
from .state import in_kernel, now, one_at_a_time

MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
_NO_CONFIG = """
Kernel launch configuration was not specified. Use the syntax:

kernel_function[blockspergrid, threadsperblock](arg0, arg1, ..., argn)

See https://numba.readthedocs.io/en/stable/cuda/kernels.html#kernel-invocation for help.

"""


class Kernel:
    """What `cuda.jit` makes: `kernel[grid, block, stream, shared](...)`, or a device function."""

    def __init__(
        self,
        py_func,
        device=False,
        signatures=None,
        debug=False,
        extensions=(),
        returned=None,
    ):
        self.py_func = py_func
        self.device = device
        self.debug = debug
        self.signatures_given = signatures
        self.returned = returned  # the type that a device function's one signature says
        self.extensions = list(extensions)
        self.variants = {}  # argument types -> the function that runs
        functools.update_wrapper(self, py_func)
        code = py_func.__code__
        self.arity = code.co_argcount
        self.defaults = py_func.__defaults__ or ()

    def __getitem__(self, configuration):
        if not isinstance(configuration, tuple) or len(configuration) not in (2, 3, 4):
            raise ValueError("must specify at least the griddim and blockdim")
        return self.configure(*configuration)

    def configure(self, griddim, blockdim, stream=0, sharedmem=0):
        """The kernel with its launch shape: grid, block, stream, bytes of dynamic shared memory."""
        return Configured(
            self,
            dimensions(griddim, "griddim"),
            dimensions(blockdim, "blockdim"),
            stream,
            sharedmem,
        )

    def forall(self, ntasks, tpb=0, stream=0, sharedmem=0):
        """The kernel with a grid that covers `ntasks` threads."""
        if ntasks < 0:
            raise ValueError(f"Can't create ForAll with negative task count: {ntasks}")
        tpb = tpb or 128

        def launch(*args):
            if ntasks:
                self[(ntasks + tpb - 1) // tpb, tpb, stream, sharedmem](*args)

        return launch

    def __call__(self, *args, **kwargs):
        if in_kernel():
            if not self.device:
                raise KernelError(
                    f"{self.__name__} is a kernel; a kernel cannot be called from a kernel",
                    "Make it a device function: @cuda.jit(device=True).",
                )
            return self.function()(*args, **kwargs)
        if self.device:
            raise TypeError(
                f"{self.__name__} is a device function: only kernels and device functions can "
                "call it"
            )
        raise ValueError(_NO_CONFIG)

    def function(self, types=None, kinds=()):
        """The function to run for these argument types. Globals are frozen at first use.

        kinds: the types again, of integers their bits.
        """
        suspended = fibres.are_generators() and (settings.shuffled() or "where it waits")
        key = types, now.watching, now.observer is not None, kinds, suspended
        try:
            return self.variants[key]
        except KeyError:
            made = namespace.specialize(self.py_func, kinds=kinds, kernel=not self.device)
            self.variants[key] = made
            return self.variants[key]

    def only_signature(self):
        """The types of a device function's arguments, if they are said, and that once."""
        given = self.signatures_given or ()
        return given[0] if len(given) == 1 else None

    def bound(self, kinds, named):
        """The types of all parameters: of a call's arguments, of those by name, of defaults."""
        types = self.only_signature()
        if types is not None:
            return tuple(map(kind_of_type, types))
        left = self.py_func.__code__.co_varnames[len(kinds) : self.arity]
        defaults = dict(zip(reversed(left), map(kind_of, reversed(self.defaults)), strict=False))
        return kinds + tuple(named.get(name, defaults.get(name)) for name in left)

    def result(self, kinds, done):
        """The type of what this device function gives for parameters of these types."""
        if self.returned is not None:
            return of_argument(kind_of_type(self.returned))
        return namespace.result_of(self.py_func, kinds, done)

    def for_types(self, kinds, done):
        """The function that a kernel calls with arguments of these types."""
        if self.only_signature() is not None:
            return self.in_kernels(done)
        return namespace.specialize(self.py_func, done, kinds)

    def in_kernels(self, done):
        """What kernels call by this device function's name.

        One of a single signature casts arguments and result to its types.
        """
        types = self.only_signature()
        if types is None:
            return namespace.specialize(self.py_func, done)
        kinds = tuple(map(kind_of_type, types))
        made = namespace.specialize(self.py_func, done, kinds)
        returned = self.returned

        def call(*args):
            result = made(*map(cast_to, args, types))
            return result if returned is None else cast_to(result, returned)

        def suspended(*args):
            result = yield from made(*map(cast_to, args, types))
            return result if returned is None else cast_to(result, returned)

        return suspended if inspect.isgeneratorfunction(made) else call

    def specialize(self, *args):
        return self

    def compile(self, signature):
        with one_at_a_time(watched=False):
            return self.function()

    @property
    def specialized(self):
        return False

    @property
    def overloads(self):
        return Overloads(self)

    @property
    def signatures(self):
        return list(dict.fromkeys(types for types, *_ in self.variants if types is not None))

    nopython_signatures = signatures

    def __getattr__(self, name):
        if name.startswith(
            ("inspect_", "get_regs", "get_shared", "get_const", "get_local", "get_max_threads")
        ):
            raise NotImplementedError(
                f"{name}: there is no GPU code to look at; the CPU engine runs the Python source"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self):
        return (
            f"<{'device function' if self.device else 'kernel'} {self.__name__} on the CPU engine>"
        )


class Overloads(dict):
    """kernel.overloads: by signature."""

    def __init__(self, kernel):
        super().__init__({key: Overload(kernel, key) for key in kernel.signatures})
        self.kernel = kernel

    def __missing__(self, key):
        return Overload(self.kernel, key)


class Overload:
    """kernel.overloads[types]: knows how many blocks a cooperative grid can have."""

    def __init__(self, kernel, types):
        self.kernel = kernel
        self.types = types

    @property
    def signature(self):
        """Numba's signature of a device function; what it returns is inferred where not given."""
        from numba import njit
        from numba.core.typing import signature

        returned = self.kernel.returned
        if returned is None:
            compiled = njit(self.types)(self.kernel.py_func)
            returned = compiled.overloads[self.types].signature.return_type
        return signature(returned, *self.types)

    def max_cooperative_grid_blocks(self, blockdim, dynsmemsize=0):
        """How many blocks of this size can be alive at once: all of a modest grid."""
        device = get_current_device()
        threads = int(np.prod(blockdim))
        return device.MULTIPROCESSOR_COUNT * (device.MAX_THREADS_PER_MULTIPROCESSOR // threads)


class Configured:
    """A kernel with its launch shape."""

    def __init__(self, kernel, grid, block, stream, sharedmem):
        self.kernel = kernel
        self.griddim = grid
        self.blockdim = block
        self.stream = stream
        self.sharedmem = sharedmem

    def __call__(self, *args):
        __tracebackhide__ = True  # a notebook shows the learner's frames only
        check_stream(self.stream)
        sizes.note(self.kernel, self.griddim, self.blockdim, self.sharedmem, args)
        grid, block = (tuple(map(int, shape)) for shape in (self.griddim, self.blockdim))
        launch(self.kernel, grid, block, self.sharedmem, args)


def dimensions(dim, name):
    """A launch dimension as three integers."""
    given = list(dim) if isinstance(dim, (tuple, list)) else [dim]
    if dim is None:
        raise ValueError(_NO_CONFIG)
    if len(given) > 3:
        raise ValueError(f"{name} must be a sequence of 1, 2 or 3 integers, got {given!r}")
    for size in given:
        if not isinstance(size, numbers.Integral):
            raise TypeError(f"{name} must be a sequence of integers, got {given!r}")
    return tuple(map(sizes.whole, given)) + (1,) * (3 - len(given))


def check_limits(grid, block, sharedmem):
    """Refuse what a GPU refuses, with the driver's error code and a reason."""

    def refuse(reason):
        raise CudaAPIError(
            1, f"Call to cuLaunchKernel results in CUDA_ERROR_INVALID_VALUE: {reason}"
        )

    threads = block[0] * block[1] * block[2]
    if threads > MAX_THREADS:
        refuse(f"a block of {block} has {threads:,} threads; {MAX_THREADS:,} is the most")
    for name, counts, limits in (("block", block, MAX_BLOCK), ("grid", grid, MAX_GRID)):
        for axis, size, limit in zip("xyz", counts, limits, strict=True):
            if size < 1:
                refuse(f"the {name} is {counts}; {axis} must be at least 1")
            if size > limit:
                refuse(f"the {name} is {counts}; {axis} can be {limit:,} at most")
    if not 0 <= sharedmem <= DYNAMIC_SHARED:
        refuse(f"{sharedmem:,} bytes of dynamic shared memory; {DYNAMIC_SHARED:,} is the most")


def check_stream(stream):
    """Refuse a stream of another device than the current one, as the driver does."""
    owner = stream.device_id if isinstance(stream, Stream) else None
    if owner is not None and owner != devices.current():
        raise CudaAPIError(
            400,
            "Call to cuLaunchKernel results in CUDA_ERROR_INVALID_HANDLE: the stream is of device "
            f"{owner}, and device {devices.current()} is current",
        )


def launch(kernel, grid, block, sharedmem, args):
    """Run `kernel` on `args`. Host arrays are copied in, and back at the end."""
    __tracebackhide__ = True
    if in_kernel():
        raise KernelError("a kernel cannot launch kernels in Numba", "Launch from the host.")
    if kernel.device:
        raise RuntimeError("Cannot compile a device function as a kernel")
    check_limits(grid, block, int(sharedmem))
    args = all_arguments(kernel, args)
    with one_at_a_time():
        back = []
        names = kernel.py_func.__code__.co_varnames[: kernel.arity]
        ready = [argument(arg, name, back) for arg, name in itertools.zip_longest(args, names)]
        types = tuple(type_of(arg) for arg in ready)
        kinds = tuple(map(kind_of, ready, args))
        if kernel.signatures_given:
            ready, kinds = match(kernel, ready, types)
        function = kernel.function(types, kinds)
        run = Launch(function, ready, grid, block, int(sharedmem), kernel.__name__)
        error = None
        try:
            run.run()
        except Exception as caught:
            error = explain(caught, run, kernel)
            raise error from None
        finally:
            if now.observer is not None:
                now.observer.finish(error)
        copy_back(back)


def all_arguments(kernel, args):
    """The arguments of a launch, with the defaults of those that were left out."""
    required = kernel.arity - len(kernel.defaults)
    if len(args) < required:
        raise TypeError(f"not enough arguments: expected {kernel.arity}, got {len(args)}")
    if len(args) > kernel.arity and not kernel.py_func.__code__.co_flags & inspect.CO_VARARGS:
        raise TypeError(f"too many arguments: expected {kernel.arity}, got {len(args)}")
    args = args + kernel.defaults[len(args) - required :]
    for extension in reversed(kernel.extensions):
        args = tuple(extension.prepare_args(None, arg, stream=0, retr=[])[1] for arg in args)
    return args


def copy_back(pairs):
    """To each host array, or record, what its device copy holds."""
    for host, device in pairs:
        if isinstance(host, np.void):
            for field in host.dtype.names:
                host[field] = device[field]
        else:
            host[...] = device


#: Options of numba-cuda for its compiler, which have no effect here
IGNORED = set(
    """inline forceinline opt lineinfo cache launch_bounds lto shared_memory_carveout fastmath
    max_registers nopython abi abi_info argtypes restype bind""".split()
)


def _unwrapped(function):
    """The Python function of one that Numba has compiled already: `cuda.jit` takes those, too."""
    return getattr(function, "py_func", function)


def jit(
    func_or_sig=None,
    device=False,
    debug=None,
    link=(),
    boundscheck=None,
    extensions=(),
    **options,
):
    """Make a kernel, or a device function. Options for the GPU compiler have no effect."""
    if boundscheck:
        raise NotImplementedError("bounds checking is not supported for CUDA")
    if link:
        raise NotImplementedError("link=: there is no GPU linker on this machine")
    if unknown := set(options) - IGNORED:
        raise KeyError(f"Unrecognized options: {unknown}. Known options are {sorted(IGNORED)}")
    signatures = returned = None
    func_or_sig = _unwrapped(func_or_sig)
    if func_or_sig is not None and not isinstance(func_or_sig, pytypes.FunctionType):
        from numba.core import sigutils

        given = func_or_sig if isinstance(func_or_sig, list) else [func_or_sig]
        normalized = [sigutils.normalize_signature(signature) for signature in given]
        for _, returned in normalized:
            if returned is not None and not device and str(returned) != "none":
                raise TypeError("CUDA kernel must have void return type.")
        signatures = [types for types, _ in normalized]
        returned = normalized[0][1]
        func_or_sig = None

    def decorate(function):
        function = _unwrapped(function)
        if not isinstance(function, pytypes.FunctionType):
            raise TypeError(f"cuda.jit needs a function, got {type(function).__name__}")
        return Kernel(function, device, signatures, bool(debug), extensions, returned)

    return decorate if func_or_sig is None else decorate(func_or_sig)
