"""What a kernel can do wrong on the CPU engine, and numba.cuda's error classes by name."""

import linecache


class KernelError(RuntimeError):
    """A kernel failed. Its text says what happened, in which thread and block, where, what to do.

    Attributes: `problem` (one line), `hint`, `thread` and `block` ((x, y, z) or None), `filename`,
    `lineno`, `code` (the source line) and `kernel` (its name).
    """

    def __init__(self, problem, hint=None):
        super().__init__(problem)
        self.problem = problem
        self.hint = hint
        self.thread = self.block = self.filename = self.lineno = self.code = self.kernel = None

    def __str__(self):
        lines = [self.problem]
        if self.thread is not None:
            lines.append(
                f"  thread {as_text(self.thread)} of block {as_text(self.block)}"
                + (f", kernel {self.kernel}" if self.kernel else "")
            )
        if self.lineno is not None:
            lines.append(f"  {self.filename}, line {self.lineno}:  {self.code}")
        if self.hint:
            lines.append("  " + self.hint)
        return "\n".join(lines)


def placed(error, code, line):
    """A KernelError of a function that has not run: with the place in its source."""
    error.kernel = code.co_name
    error.filename = code.co_filename
    error.lineno = line
    error.code = linecache.getline(code.co_filename, line).strip()
    return error


class KernelIndexError(KernelError, IndexError):
    """An index outside its array. On a GPU it hits something else, and nothing is said."""


class BarrierError(KernelError):
    """Threads wait for others which never come: a barrier that only some reach, a deadlock."""


class UninitializedError(KernelError):
    """A shared or local element was read before any thread wrote it."""


class KernelTimeout(KernelError):
    """A launch ran longer than the time given by `time_limit`."""

    def __init__(self):
        super().__init__(
            "the launch was stopped: it ran longer than its time limit",
            "A loop that never ends? On a GPU the program would hang here.",
        )


class CudaDriverError(Exception):
    pass


class CudaRuntimeError(Exception):
    pass


class CudaSupportError(ImportError):
    pass


class CudaAPIError(CudaDriverError):
    """An error code of the CUDA driver; `code` is its number."""

    def __init__(self, code, msg):
        self.code = code
        self.msg = msg
        super().__init__(code, msg)

    def __str__(self):
        return f"[{self.code}] {self.msg}"


class KernelRuntimeError(RuntimeError):
    pass


def as_text(point):
    """(x, y, z) without spaces, as CUDA programmers write it."""
    return "(" + ",".join(str(int(v)) for v in point) + ")"
