"""Inside the candidate's process: what runs for a call.

NumPy's heavy functions count their calls, PyTorch's dispatcher tells of each operation, the engines
of each launch, and a trace counts the steps of the candidate's own code.
"""

import collections
import contextlib
import dataclasses
import math
import os
import sys

import numpy as np

COUNTS = collections.Counter()
#: Where NumPy's own files are
NUMPY = os.path.dirname(np.__file__) + os.sep
#: Files that play kernels
INTERPRETERS = ("/triton/", "/numba/", "/numba_cuda/", "/utils/")
#: Functions of NumPy that do the heavy work of a task
HEAVY = (
    "matmul dot inner vdot tensordot einsum kron convolve correlate sort argsort partition unique"
    " cumsum cumprod sum prod mean var std max min amax amin argmax argmin median histogram"
    " bincount"
    " searchsorted nonzero take trapezoid"
).split()
LINALG = (
    "matmul multi_dot inv solve svd qr eig eigh cholesky det norm lstsq pinv matrix_power".split()
)
FFT = "fft ifft rfft irfft fft2 ifft2 rfft2 fftn ifftn rfftn irfftn".split()


def count_numpy():
    """Let NumPy's heavy functions count their calls. A candidate's import comes later."""
    for module, prefix, names in (
        (np, "", HEAVY),
        (np.linalg, "linalg.", LINALG),
        (np.fft, "fft.", FFT),
    ):
        for name in names:
            original = getattr(module, name, None)
            if original is not None and "." not in name:
                setattr(module, name, counting(original, prefix + name))


def count(name, frame):
    """Note a call, unless another library makes it: Triton's interpreter multiplies by NumPy.

    What NumPy calls is called by whoever called NumPy.
    """
    while frame.f_code.co_filename.startswith(NUMPY) and frame.f_back is not None:
        frame = frame.f_back
    if not any(folder in frame.f_code.co_filename for folder in INTERPRETERS):
        COUNTS[name] += 1


def counting(original, name):
    """A function that does what the original does, and counts."""
    if isinstance(original, np.ufunc):
        return CountingUfunc(original, name)

    def counted(*arguments, **named):
        count(name, sys._getframe(1))
        return original(*arguments, **named)

    counted.__name__ = name
    counted.__wrapped__ = original
    return counted


class CountingUfunc:
    """A ufunc with all its methods, which counts its calls."""

    def __init__(self, original, name):
        self._original, self._name = original, name

    def __call__(self, *arguments, **named):
        count(self._name, sys._getframe(1))
        return self._original(*arguments, **named)

    def __getattr__(self, name):
        return getattr(self._original, name)


#: The last result, where what is allocated shall hold it
LEFT = {}


def poisoned_allocations():
    """Let np.empty and its like give poison: what is left over is never the right answer."""
    for name in ("empty", "empty_like"):
        setattr(np, name, poisoning(getattr(np, name)))


def poisoning(original):
    """The same function, whose array holds NaN or a large number."""

    def poisoned(*arguments, **named):
        array = original(*arguments, **named)
        left = LEFT.get("result")
        if left is not None and left.shape == array.shape and left.dtype == array.dtype:
            array[...] = left  # as memory may well hold the answer to the call before
        else:
            fill_with_poison(array)
        return array

    poisoned.__wrapped__ = original
    return poisoned


def fill_with_poison(array):
    """NaN for floats, a number that data rarely hold for integers."""
    if array.dtype.kind in "fc":
        array.fill(np.nan)
    elif array.dtype.kind in "iu":
        array.fill(np.iinfo(array.dtype).max // 3)
    elif array.dtype.kind == "b":
        array.fill(True)


@contextlib.contextmanager
def dispatched(operations, poison):
    """Count PyTorch's operations; what torch.empty gives is poisoned."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counting(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls):
            return False  # else PyTorch's compiler is imported, which takes longer than all calls

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            name = function.__qualname__ if hasattr(function, "__qualname__") else str(function)
            name = str(function).removeprefix("aten.").partition(".")[0]
            operations[name] += 1
            if name in ("_to_copy", "to") and isinstance(result, torch.Tensor):
                operations[f"cast:{str(args[0].dtype)[6:]}:{str(result.dtype)[6:]}"] += 1
            if poison and name in ("empty", "empty_like", "empty_strided", "new_empty", "resize_"):
                if isinstance(result, torch.Tensor) and result.is_floating_point():
                    result.fill_(float("nan"))
                elif isinstance(result, torch.Tensor) and result.dtype in (
                    torch.int32,
                    torch.int64,
                ):
                    result.fill_(1_234_567)
            return result

    with Counting():
        yield


class Launched(list):
    """Launches as they come; of the first few that can be traced, the arguments as they were: a
    kernel that is traced afterwards must not find there what it left.

    most: threads of such a launch; 0 where none is traced.
    """

    def __init__(self, most):
        super().__init__()
        self.most, self.before = most, []
        if most:
            from utils.tracer import copied

            self.copied = copied

    def append(self, launch):
        super().append(launch)
        if len(self.before) < MOST_LAUNCHES and can_be_traced(launch, self.most):
            roots = {}
            with contextlib.suppress(Exception):
                copies = tuple(self.copied(one, roots) for one in launch.args)
                self.before.append(dataclasses.replace(launch, args=copies))


def can_be_traced(launch, most):
    """Whether it is a launch of a Numba kernel by at most so many threads."""
    if not hasattr(getattr(launch, "kernel", None), "py_func"):
        return False
    return math.prod(int(n) for n in (*launch.grid, *launch.block)) <= most


class Launches:
    """The kernels that a call launches, and what the engines say of them."""

    def __init__(self, message):
        self.names, self.problems = [], []
        self.order = message["order"]
        self.races = message["races"]
        self.stack = contextlib.ExitStack()
        self.noted = None

    def __enter__(self):
        if "utils.sizes" in sys.modules:
            from utils import sizes

            self.noted = self.stack.enter_context(sizes.noted(Launched(self.races)))
        cuda_c_watched(self.stack)
        if self.order is not None and "utils.cpu.numba_cuda" in sys.modules:
            from utils.cpu.numba_cuda import schedule

            self.stack.enter_context(schedule(self.order))
        if self.order is not None and "triton.runtime.interpreter" in sys.modules:
            from utils.cpu.triton import taking_turns

            self.stack.enter_context(taking_turns(self.order))
        TRITON.clear()
        watch_triton()
        return self

    def __exit__(self, kind, error, trace):
        self.stack.close()
        launches = [one for one in self.noted or () if hasattr(one, "kernel")]
        self.names = [name_of(one.kernel) for one in launches] + list(TRITON)
        if error is None and self.noted is not None and self.noted.before:
            counted = COUNTS.copy()
            for one in self.noted.before:
                self.problems += races_of(one)
            COUNTS.clear()
            COUNTS.update(counted)  # that a launch is made again is none of the candidate's doing


def origin_of(trace, mine):
    """The engine or library from which an error comes; "" for the candidate's own."""
    last = ""
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "")
        if trace.tb_frame.f_code.co_filename not in mine:
            last = name.partition(".")[0]
        trace = trace.tb_next
    return last if last in ("numba", "numba_cuda", "triton", "utils", "torch", "cuda") else ""


def cuda_c_watched(stack):
    """Let what is loaded from CUDA C be built with the engine's checks."""
    if "utils.cuda_c" in sys.modules:
        from utils import cuda_c

        stack.enter_context(cuda_c.checked())


TRITON = []


def watch_triton():
    """Note the launches of Triton's interpreter."""
    module = sys.modules.get("triton.runtime.interpreter")
    if module is None or getattr(module.GridExecutor, "noted_by_judge", False):
        return
    run = module.GridExecutor.__call__

    def noted(self, *arguments, **named):
        TRITON.append(getattr(self.fn, "__name__", "a Triton kernel"))
        return run(self, *arguments, **named)

    module.GridExecutor.__call__ = noted
    module.GridExecutor.noted_by_judge = True


def name_of(kernel):
    """A kernel's name."""
    signature = getattr(kernel, "signature", None)
    return getattr(signature, "name", None) or getattr(kernel, "__name__", "kernel")


#: Of a call: launches that are watched access by access; accesses and other events of each
MOST_LAUNCHES = 8
MOST_EVENTS = 300_000


def races_of(launch):
    """What the tracer says of a launch that was made: races, in its words."""
    from utils.tracer import trace

    try:
        traced = trace(
            launch.kernel,
            launch.grid,
            launch.block,
            *launch.args,
            shared_bytes=launch.shared_bytes,
            seconds=None,  # its watchdog leaves CPython 3.11 with a flag on which tracing hangs
            limit=MOST_EVENTS,
        )
    except Exception:
        return []
    return [one for one in traced.problems if one.startswith("RACE")][:2]


class Lines:
    """How many steps of the candidate's code run, and which errors it keeps to itself."""

    def __init__(self, mine):
        self.mine = mine
        self.count, self.swallowed = 0, []
        state = sys.modules.get("utils.cpu.numba_cuda.state")
        self.in_kernel = state.in_kernel if state else lambda: False  # its launches are counted

    def start(self):
        sys.settrace(self.enter)

    def stop(self):
        sys.settrace(None)

    def enter(self, frame, event, argument):
        if frame.f_code.co_filename not in self.mine or self.in_kernel():
            return None
        self.count += 1
        frame.f_trace_opcodes = True
        return self.step

    def step(self, frame, event, argument):
        self.count += 1
        if event == "exception" and len(self.swallowed) < 20:
            kind = argument[0].__name__
            if kind not in ("StopIteration", "GeneratorExit"):
                name = os.path.basename(frame.f_code.co_filename)
                origin = origin_of(argument[2], self.mine)
                self.swallowed.append([kind, f"{name}, line {frame.f_lineno}", origin])
        return self.step
