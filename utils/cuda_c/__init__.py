"""CUDA C++ kernels called from Python: ``cuda_c.load("build/k.cu").kernel[grid, block](out, a)``.

On a GPU the source is compiled by NVRTC through cuda-core for exactly this GPU. Without one the
same source runs on the CPU runtime in ``utils.cpu.cuda_c``. Arguments are checked against the
kernel's signature, because a wrong type would otherwise be read as garbage.
"""

import contextlib
import contextvars
import ctypes
import functools
import math
import re
import struct
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from .. import sizes
from ..engine import gpu, has_gpu
from ..occupancy import limits
from ..tools import replaced
from ..tools.diagnostics import LearnerError, annotate
from .device_code import HEADERS, CompileError, compile_device_code
from .launching import BFLOAT16, Arguments, Launcher, configuration
from .signature import Parameter, Signature, kernels_in

MAX_THREADS_PER_BLOCK = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
#: Bytes of dynamic shared memory that a block gets without its kernel's limit being raised
MAX_SHARED_UNASKED = 48 << 10
MOST_LAUNCHES = 256  # configurations that a kernel remembers


class LaunchError(LearnerError):
    """The kernel could not be launched as asked, or failed while it ran."""


def load(
    path: str | Path,
    *,
    flags: tuple[str, ...] = (),
    check: bool = False,
) -> "Module":
    """Compile the kernels in a .cu file.

    path: a file that holds kernels (and what they need), without ``main``.
    flags: compiler flags such as ``("-DTILE=32", "--use_fast_math")``.
    check: without a GPU, build with the CPU runtime's slow checks (bounds, races, uninitialised
        memory).
    Where another file stands in this one's place, that one is built (`tools.replaced`).
    Raises FileNotFoundError, and CompileError with the source lines marked.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist: run the cell that writes it (%%writefile {path}) first"
        )
    theirs = replaced.current(path)
    if theirs != path:
        print(f"[{replaced.note(path)}]")
        flags = (*flags, f"-I{path.parent}")  # for what it includes from elsewhere
    return Module(theirs, flags=tuple(flags), check=check or _checking.get())


_checking = contextvars.ContextVar("checking", default=False)


@contextlib.contextmanager
def checked():
    """In this block `load` builds with the CPU runtime's slow checks, where there is no GPU."""
    token = _checking.set(True)
    try:
        yield
    finally:
        _checking.reset(token)


class Module:
    """The kernels of one .cu file, as attributes; a template is ``module["scale<float>"]``."""

    def __init__(self, path: Path, *, flags: tuple[str, ...], check: bool):
        self.path = path
        self.source = path.read_text()
        self.signatures = kernels_in(self.source)
        if not self.signatures:
            raise CompileError(
                f"{path} holds no __global__ function, so there is no kernel to call"
            )
        self._flags = flags
        self._check = check
        self._engine = _Nvrtc if has_gpu() else _Cpu
        plain = [name for name, signature in self.signatures.items() if not signature.template]
        self._built = self._engine(self, plain)
        self._kernels = {}  # by name or expression

    def __getattr__(self, name):
        if name.startswith("_") or name not in self.signatures:
            raise AttributeError(self._has_no(name))
        signature = self.signatures[name]
        if signature.template:
            arguments = ", ".join(signature.template)
            example = f'module["{name}<{arguments}>"]'
            raise AttributeError(f"{name} is a template: ask for it with its arguments, {example}")
        return self._kernel(name, signature, self._built)

    def _kernel(self, expression, signature, built):
        if expression not in self._kernels:
            self._kernels[expression] = Kernel(signature, expression, built, self.path)
        return self._kernels[expression]

    def __getitem__(self, expression: str) -> "Kernel":
        if expression in self._kernels:
            return self._kernels[expression]
        name, _, arguments = expression.partition("<")
        name = name.strip()
        if name not in self.signatures:
            raise KeyError(self._has_no(name))
        if not arguments:
            return self.__getattr__(name)  # not the module's own: a kernel may be called counts
        values = arguments.rstrip(" >").split(",")
        signature = self.signatures[name].instantiate(tuple(map(str.strip, values)))
        return self._kernel(expression, signature, self._engine(self, [expression]))

    def _has_no(self, name):
        kernels = ", ".join(self.signatures)
        return f"{self.path} has no kernel {name!r}; it has: {kernels}"

    def counts(self) -> dict[str, int]:
        """What the last launch did (accesses, barriers, atomics ...), as the CPU runtime counts.

        Without a GPU and with ``check=True`` only; `utils.cpu.cuda_c.library.Counts` says more.
        """
        return self._built._library.counts()

    def __dir__(self):
        return [*super().__dir__(), *self.signatures]

    def __repr__(self):
        return f"{self.path}: " + "; ".join(map(str, self.signatures.values()))


class Kernel:
    """A compiled kernel: ``kernel[grid, block, shared, stream]`` is ``<<<...>>>`` of CUDA C."""

    def __init__(self, signature: Signature, expression: str, built, path: Path):
        self.signature = signature
        self._expression = expression
        self._built = built
        self._path = path
        # made once: a launch must cost little
        self._places = [f"{signature.name}: `{p}`" for p in signature.parameters]
        self._launches = {}  # by configuration

    def __repr__(self):
        return f"<CUDA C kernel {self.signature}>"

    @property
    def handle(self) -> int:
        """The driver's handle of the compiled kernel, for launches with attributes; GPU only."""
        return int(self._built._kernels[self._expression].handle)

    @property
    def path(self) -> Path:
        """The file that it was compiled from."""
        return self._path

    def watched(self) -> "Kernel":
        """The same kernel as the CPU runtime builds it with its slow checks; without a GPU only."""
        if self._built._check:
            return self
        return Kernel(
            self.signature, self._expression, self._built.checked(self._expression), self._path
        )

    def record(self, grid, block, shared_bytes, arguments, most: int):
        """Launch a watched kernel, and return what `last_record` does, of up to `most` events."""
        library = self._built._library
        library.record(most)
        try:
            self[grid, block, shared_bytes](*arguments)
        finally:
            self._recorded = library.recorded().copy()
            library.record(0)
        return self.last_record()

    def last_record(self):
        """(events as `Library.recorded` has them, (address, bytes, name) of the arrays)."""
        return self._recorded, self._built.buffers

    def line_of(self, code: int) -> int:
        """The line of the source that an address of its code belongs to; 0: none."""
        return self._built._library.line_of(code)

    def __call__(self, *arguments):
        raise TypeError(
            f"{self.signature.name} is a kernel and needs a launch configuration: "
            f"{self.signature.name}[grid, block](...)"
        )

    def __getitem__(self, configuration) -> "Launch":
        if sizes.noting():
            return self._noted(configuration)
        try:
            return self._launches[configuration]
        except (KeyError, TypeError):  # a list in it, say
            return self._new_launch(configuration)

    def _new_launch(self, configuration):
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise LaunchError(
                f"{self.signature.name}[...] takes grid, block and, if needed, the bytes of "
                "dynamic shared memory and a stream"
            )
        grid, block, shared_bytes, stream = (*configuration, 0, 0)[:4]
        grid = _dim3(grid, "grid", MAX_GRID)
        block = _dim3(block, "block", MAX_BLOCK)
        if math.prod(block) > MAX_THREADS_PER_BLOCK:
            raise LaunchError(
                f"{math.prod(block):,} threads a block: {' × '.join(map(str, block))} is over the "
                f"limit of {MAX_THREADS_PER_BLOCK:,}. Use a smaller block and more blocks"
            )
        launch = Launch(self, grid, block, int(shared_bytes), stream)
        if all(isinstance(part, (int, tuple)) for part in configuration):  # no stream to keep alive
            if len(self._launches) == MOST_LAUNCHES:
                self._launches.clear()
            self._launches[configuration] = launch
        return launch

    def _noted(self, configuration):
        """The launch, which is also told of with the numbers as they were given."""
        launch = self._new_launch(configuration)
        grid, block, shared_bytes = (*configuration, 0)[:3]

        def run(*arguments):
            sizes.note(self, grid, block, shared_bytes, arguments)
            launch(*arguments)

        return run

    def prepared(self, arguments, after: contextlib.ExitStack) -> list:
        """A ctypes value for each argument. Raises TypeError that says what is wrong with one."""
        parameters = self.signature.parameters
        if len(arguments) != len(parameters):
            raise TypeError(
                f"{self.signature} takes {len(parameters)} arguments, {len(arguments)} were given"
            )
        rows = zip(self._places, parameters, arguments, strict=True)
        return [_argument(*row, after) for row in rows]


class Launch:
    """A kernel with its configuration, to be called with the kernel's arguments."""

    def __init__(self, kernel: Kernel, grid, block, shared_bytes: int, stream):
        self._kernel = kernel
        self._shape = grid, block, shared_bytes
        self._stream = stream
        self._quick = None  # made at the first call

    def __call__(self, *arguments):
        kernel, built = self._kernel, self._kernel._built
        if self._quick is None:
            self._quick = built.quick(kernel, *self._shape, self._stream)
        if self._quick(arguments):
            return
        with contextlib.ExitStack() as after:
            prepared = kernel.prepared(arguments, after)
            built.launch(kernel._expression, *self._shape, self._stream, prepared)


def _dim3(value, what, limits):
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    are_whole = all(isinstance(size, (int, np.integer)) for size in given)
    if not 1 <= len(given) <= 3 or not are_whole:
        hint = ""
        if any(isinstance(size, float) for size in given):
            hint = " (use // for a whole number)"
        raise LaunchError(
            f"{what} must be an int or a tuple of up to three ints, got {value!r}{hint}"
        )
    shape = (*map(int, given), 1, 1)[:3]
    for axis, size, limit in zip("xyz", shape, limits, strict=True):
        if not 1 <= size <= limit:
            raise LaunchError(f"{what}.{axis} is {size:,}; it must be between 1 and {limit:,}")
    return shape


# ---- arguments


def _argument(where: str, parameter: Parameter, value, after: contextlib.ExitStack):
    """A ctypes value for one parameter.

    Arrays on the wrong side are copied there and, after the launch, back.
    """
    if parameter.pointer:
        return _pointer(where, parameter, value, after)
    if parameter.type == "CUtensorMap":
        if type(value).__name__ not in ("TensorMapDescriptor", "TensorMap"):
            raise TypeError(
                f"{where} takes what utils.cuda_c.tensor_map.tensor_map(array, box=...) makes, "
                f"got {type(value).__name__}"
            )
        return value
    is_single = isinstance(value, np.ndarray) and value.ndim == 0
    if is_single or isinstance(value, (int, float, bool, np.generic)):
        return _scalar(where, parameter, value)
    if isinstance(value, (ctypes._SimpleCData, ctypes.Structure)):
        return value
    raise TypeError(f"{where} takes a number, got {type(value).__name__}")


def _scalar(where: str, parameter: Parameter, value):
    dtype = parameter.dtype
    if dtype is None:
        raise TypeError(f"{where} has a type of its own: pass a ctypes.Structure laid out like it")
    if dtype.kind in "iu":
        if not float(value).is_integer():
            raise TypeError(f"{where} takes a whole number, got {value!r}")
        lowest, highest = _limits(dtype)
        if not lowest <= int(value) <= highest:
            raise TypeError(
                f"{where} cannot hold {value!r} (it goes from {lowest:,} to {highest:,})"
            )
        value = int(value)
    if dtype == np.float16:  # ctypes has no half: hand over its 16 bits
        bits = np.float16(value).view(np.uint16)
        return ctypes.c_uint16(int(bits))
    return _ctype(dtype)(value)


@functools.cache
def _limits(dtype: np.dtype) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


@functools.cache
def _ctype(dtype: np.dtype):
    return np.ctypeslib.as_ctypes_type(dtype)


def _pointer(where: str, parameter: Parameter, value, after: contextlib.ExitStack):
    if value is None:
        return ctypes.c_void_p(None)
    if not has_gpu() and getattr(value, "__cuda_ndarray__", False):
        value = value.data  # a device array of the CPU engine: its "device" memory is a NumPy array
    has_data = hasattr(value, "__array__") or hasattr(value, "__cuda_array_interface__")
    if not has_data and not _is_tensor(value):
        raise TypeError(f"{where} takes an array, got {type(value).__name__} {value!r}")
    dtype = _dtype_name(value)
    if parameter.dtype is not None and dtype != parameter.dtype.name:
        raise TypeError(
            f"{where} points to {parameter.dtype.name}, got an array of {dtype}. "
            f"Convert it first, e.g. a.astype(np.{parameter.dtype.name})"
        )
    # NumPy has no bfloat16: uint16 holds its bits
    if parameter.type in BFLOAT16 and dtype not in ("bfloat16", "uint16"):
        raise TypeError(
            f"{where} points to bfloat16, got an array of {dtype}. Convert it first, e.g. "
            "a.to(torch.bfloat16)"
        )
    if not _is_contiguous(value):
        raise TypeError(
            f"{where}: the array is not contiguous in memory (a transposed or strided view?), so a "
            "bare pointer would walk over the wrong elements. Pass np.ascontiguousarray(a) or "
            "a.contiguous()"
        )
    if has_gpu():
        return ctypes.c_void_p(_device_address(value, parameter, after))
    pointer = ctypes.c_void_p(_host_address(where, value))
    # what the CPU runtime checks accesses against
    pointer.buffer = (pointer.value or 0, value.nbytes, parameter.name)
    return pointer


def _is_tensor(value):
    package = type(value).__module__.partition(".")[0]
    return package == "torch" and hasattr(value, "data_ptr")


def _dtype_name(value) -> str:
    return str(value.dtype).removeprefix("torch.")


def _is_contiguous(value) -> bool:
    if _is_tensor(value):
        return value.is_contiguous()
    if isinstance(value, np.ndarray):
        return value.flags.c_contiguous
    return value.__cuda_array_interface__.get("strides") is None


def _host_address(where: str, value) -> int:
    if _is_tensor(value):
        return value.data_ptr()
    if isinstance(value, np.ndarray):
        if not value.flags.writeable and "const" not in where:
            raise TypeError(f"{where} is written by the kernel, but the array is read-only")
        return value.ctypes.data
    return value.__cuda_array_interface__["data"][0]


def _device_address(value, parameter: Parameter, after: contextlib.ExitStack) -> int:
    """Address on the GPU.

    Host arrays are copied there first and, unless the kernel only reads them, back.
    """
    if _is_tensor(value) and value.is_cuda:
        return value.data_ptr()
    if hasattr(value, "__cuda_array_interface__") and not _is_tensor(value):
        return value.__cuda_array_interface__["data"][0]
    from numba import cuda

    host = value.detach().numpy() if _is_tensor(value) else value
    copy = cuda.to_device(host)
    after.callback(lambda: None if parameter.const else copy.copy_to_host(host))
    return copy.__cuda_array_interface__["data"][0]


# ---- the two engines


def _never(arguments) -> bool:
    """No launch is made without looking at the arguments."""
    return False


#: What NVRTC says of a kernel whose name functions of CUDA bear, too: norm, say
AMBIGUOUS = "cannot determine which instance of overloaded function"


class _Nvrtc:
    """Compile with NVRTC through cuda-core, launch on the GPU."""

    def __init__(self, module: Module, expressions: list[str]):
        from cuda.core import Device

        self._device = Device()
        self._device.set_current()
        self._kernels = self._compiled(module, expressions)
        self._launchers = {}  # by expression
        # 48 KB hold both: the kernel's own __shared__ arrays, and what a launch adds
        self._static_shared = {
            expression: kernel.attributes.shared_size_bytes
            for expression, kernel in self._kernels.items()
        }
        self._shared_limit = {
            expression: MAX_SHARED_UNASKED - static
            for expression, static in self._static_shared.items()
        }

    def _compiled(self, module: Module, expressions: list[str]) -> dict:
        """The driver's kernel of each expression."""
        compiled = functools.partial(
            compile_device_code,
            module.path,
            _own_arch(),
            flags=module._flags,
            kind="ptx" if gpu().pretended else "cubin",
        )
        asked = {expression: expression for expression in expressions}
        try:
            code = compiled(list(asked.values()))
        except CompileError as error:
            if AMBIGUOUS not in str(error):
                raise
            plain = set(expressions) & set(module.signatures)
            asked |= {name: module.signatures[name].address for name in plain}
            code = compiled(list(asked.values()))
        return {expression: code.get_kernel(name) for expression, name in asked.items()}

    def quick(self, kernel: Kernel, grid, block, shared_bytes, stream) -> Callable:
        """A function that launches with the usual arguments, without looking closer.

        It returns whether it did: False, with nothing done, where an argument is unusual.
        """
        expression = kernel._expression
        usual = Arguments(kernel.signature.parameters)
        if not usual.known:
            return _never
        if shared_bytes > self._shared_limit[expression]:
            self._raise_shared_limit(expression, shared_bytes)
        launcher = self._launcher(kernel, usual.codes)
        config = configuration(grid, block, shared_bytes, stream and _handle(stream))

        def launch(arguments):
            values = usual.values(arguments)
            if values is None:
                return False
            try:
                error = launcher(config, values)
            except (struct.error, OverflowError):  # a number that does not fit
                return False
            if error:
                raise LaunchError(_told(expression, grid, block, shared_bytes, _error_name(error)))
            return True

        return launch

    def _launcher(self, kernel, codes) -> Launcher:
        """One for all configurations of a kernel."""
        if kernel._expression not in self._launchers:
            self._launchers[kernel._expression] = Launcher(kernel.handle, codes)
        return self._launchers[kernel._expression]

    def launch(self, expression, grid, block, shared_bytes, stream, arguments):
        from cuda.core import LEGACY_DEFAULT_STREAM, LaunchConfig, launch

        if shared_bytes > self._shared_limit[expression]:
            self._raise_shared_limit(expression, shared_bytes)
        config = LaunchConfig(grid=grid, block=block, shmem_size=shared_bytes)
        # A ctypes pointer is passed as the integer it holds; every other ctypes value as it is.
        values = [a.value or 0 if isinstance(a, ctypes.c_void_p) else a for a in arguments]
        on = _stream(stream) if stream else LEGACY_DEFAULT_STREAM
        try:
            if any(isinstance(a, ctypes.Structure) for a in arguments):
                self._launch_with_structs(expression, grid, block, shared_bytes, on, arguments)
            else:
                launch(on, config, self._kernels[expression], *values)
        except Exception as error:
            raise LaunchError(_told(expression, grid, block, shared_bytes, str(error))) from None

    def _launch_with_structs(self, expression, grid, block, shared_bytes, stream, arguments):
        """Launch with any struct: the driver takes each argument's address.

        cuda-core takes numbers and pointers only.
        """
        from cuda.bindings import driver

        addresses = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(a) for a in arguments])
        (error,) = driver.cuLaunchKernel(
            int(self._kernels[expression].handle),
            *grid,
            *block,
            shared_bytes,
            int(stream.handle),
            ctypes.addressof(addresses),
            0,
        )
        if error != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(error.name)

    def _raise_shared_limit(self, expression, shared_bytes):
        """Ask for over 48 KB of shared memory a block, as cudaFuncSetAttribute does."""
        from cuda.bindings import driver

        most = self._device.properties.max_shared_memory_per_block_optin
        if gpu().pretended:
            most = min(most, limits(gpu().compute_capability).shared_block)
        static = self._static_shared[expression]
        if static + shared_bytes > most:
            own = f", with the {static:,} of its __shared__ arrays" if static else ""
            raise LaunchError(
                f"{expression}: {static + shared_bytes:,} bytes of shared memory per block{own}; "
                f"this GPU has {most:,}. Use smaller tiles or fewer stages"
            )
        kernel = self._kernels[expression]
        (error,) = driver.cuKernelSetAttribute(
            driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            shared_bytes,
            kernel.handle,
            self._device.device_id,
        )
        if error != driver.CUresult.CUDA_SUCCESS:
            raise LaunchError(
                f"{expression}: {shared_bytes:,} bytes of dynamic shared memory per block are "
                f"refused ({error.name}); this GPU has {most:,}, and the kernel's own __shared__ "
                f"arrays take {static:,}"
            )
        self._shared_limit[expression] = shared_bytes


def _own_arch() -> str:
    """This GPU's architecture with all that only it has.

    ``sm_90a`` adds Hopper's wgmma and setmaxnreg to ``sm_90``.
    """
    this_gpu = gpu()
    if this_gpu.pretended or this_gpu.compute_capability < (9, 0):
        return this_gpu.run_arch
    return f"{this_gpu.arch}a"


def _stream(stream):
    """A cuda-core stream for a torch or Numba stream or a raw handle."""
    from cuda.core import Stream

    return stream if hasattr(stream, "__cuda_stream__") else Stream.from_handle(_handle(stream))


def _handle(stream) -> int:
    """The driver's handle of a torch, Numba or cuda-core stream; a raw handle stays as it is."""
    for name in ("cuda_stream", "handle"):
        stream = getattr(stream, name, stream)
    return int(getattr(stream, "value", stream) or 0)


def _error_name(code: int) -> str:
    from cuda.bindings.driver import CUresult

    return CUresult(code).name


def _told(expression, grid, block, shared_bytes, message: str) -> str:
    """Which launch failed, and what the driver's message means."""
    return f"{expression}[{grid}, {block}, {shared_bytes}]: {explain(message)}"


#: What the driver's error codes mean for the one who wrote the kernel.
_MEANING = {
    "ILLEGAL_ADDRESS": "the kernel read or wrote outside its arrays. The CUDA context is unusable "
    "from now on: restart the notebook's kernel, check the guard and the indices",
    "LAUNCH_OUT_OF_RESOURCES": "the kernel needs more registers or shared memory for a block of "
    "this size than an SM has. Use a smaller block",
    "INVALID_VALUE": "a launch dimension or the shared memory size is out of range",
    "MISALIGNED_ADDRESS": "a vector load or store (float4 ...) at an address that is not a "
    "multiple of its size. The CUDA context is unusable from now on: restart the notebook's kernel",
    "LAUNCH_FAILED": "the kernel crashed. The CUDA context is unusable from now on: restart the "
    "notebook's kernel",
    "LAUNCH_TIMEOUT": "the kernel ran too long for a GPU that also drives a display",
    "ASSERT": "a device assert failed. The CUDA context is unusable from now on: restart the "
    "notebook's kernel",
    "OUT_OF_MEMORY": "the GPU has no more free memory: delete arrays or restart other notebooks",
}


def explain(message: str) -> str:
    """Append to a CUDA error message what it means and what to do."""
    for code, meaning in _MEANING.items():
        if re.search(rf"{code}\b", message.upper().replace(" ", "_")):
            return f"{message.strip().splitlines()[0]}\n{meaning}"
    return message


class _Cpu:
    """Compile with the machine's C++ compiler against the CPU runtime, run on the CPU."""

    def __init__(self, module: Module, expressions: list[str]):
        from ..cpu.cuda_c.build import BuildError
        from ..cpu.cuda_c.library import Library

        self._check = module._check
        self._module = module
        self.buffers = []  # (address, bytes, name) of the arrays of the last launch
        templates = [e for e in expressions if "<" in e]
        try:
            self._library = Library(
                module.path,
                flags=module._flags,
                check=module._check,
                instantiate=templates,
                headers=HEADERS,
            )
        except BuildError as error:
            log = error.log or str(error)
            message = annotate(log, {module.path.name: module.path})
            raise CompileError(replaced.named(message)) from None

    def quick(self, *_) -> Callable:
        return _never

    def checked(self, expression):
        """The same with the slow checks."""
        path, flags = self._module.path, self._module._flags
        return _Cpu(SimpleNamespace(path=path, _flags=flags, _check=True), [expression])

    def launch(self, expression, grid, block, shared_bytes, stream, arguments):
        from ..cpu.cuda_c import library

        pointers = [a for a in arguments if hasattr(a, "buffer")] if self._check else []
        with _set_apart(pointers):
            try:
                self.buffers = buffers = [pointer.buffer for pointer in pointers]
                self._library.launch(
                    expression, grid, block, shared_bytes, arguments, buffers=buffers
                )
            except library.LaunchError as error:
                raise LaunchError(str(error)) from None


#: Bytes. The CPU runtime takes an access as close as this to an array for one that misses it.
ROOM = 1 << 16


@contextlib.contextmanager
def _set_apart(pointers: list):
    """Let pointers point to copies of their arrays with nothing else near; copy back at the end."""
    spans = []  # arrays that overlap stay together
    for start, size, _ in sorted(pointer.buffer for pointer in pointers):
        if spans and start < spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], start + size)
        else:
            spans.append([start, start + size])
    copies = []
    for start, end in spans:
        room = np.empty(end - start + 2 * ROOM + 256, np.uint8)
        copy = room.ctypes.data + ROOM + (start - room.ctypes.data) % 256  # aligned as the array is
        ctypes.memmove(copy, start, end - start)
        copies.append((start, end, copy, room))
    originals = [(pointer, pointer.value, pointer.buffer) for pointer in pointers]
    for pointer in pointers:
        address, size, name = pointer.buffer
        last = address + size
        start, copy = next(
            (start, copy)
            for start, end, copy, _ in copies
            if start <= address <= end and last <= end
        )
        pointer.value = copy + address - start
        pointer.buffer = (pointer.value, size, name)
    try:
        yield
    finally:
        for pointer, value, buffer in originals:  # a tensor map serves again
            pointer.value, pointer.buffer = value, buffer
        for start, end, copy, _ in copies:
            size = end - start
            before = ctypes.string_at(start, size)
            after = ctypes.string_at(copy, size)
            if before != after:  # else it may be read-only
                ctypes.memmove(start, copy, size)
