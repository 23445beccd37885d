"""A kernel as a learner left it in its cell: is it right? Said, never raised.

tried(compute, exact, module)               CUDA C: without a GPU the CPU runtime's slow checks
                                            watch, and name a mistake with its line
watched(kernel, grid, block, out, …)        Numba: traced, access by access, on any machine
"""

import contextlib
import re

import numpy as np

from utils import cuda_c
from utils.tools.diagnostics import LearnerError
from utils.tracer import TraceError, trace

#: Where an error of the CPU runtime or of a compiler begins: "/path/file.cu:20: error: ..."
BEGINS = re.compile(r"^(?=\S+:\d+: error: )", re.MULTILINE)
MOST = 1e-4  # of the largest value: what float32 sums of a few hundred terms are off at most


def tried(
    compute,
    exact,
    loads,
    most: float = MOST,
    places=None,
    slow_checks: bool = True,
    goes_on: bool = False,
) -> None:
    """Print whether a kernel of CUDA C is right as it stands now.

    compute: runs it and returns the result (NumPy or torch); exact: float64; loads: the cached
    function that builds its file; most: error allowed, as a share of the largest value.
    places(wrong): what to print of where it is wrong, from an array of bool like `exact`.
    slow_checks: False for a kernel that computes results for nothing from what nobody has written.
    goes_on: after an access out of bounds compute again without the checks, as a GPU would. The
    caller has left room around the arrays.
    """
    loads.cache_clear()
    try:
        with cuda_c.checked() if slow_checks else contextlib.nullcontext():
            found = numbers(compute())
    except LearnerError as mistake:
        print(first_of(str(mistake)))
        if goes_on and "[out-of-bounds]" in str(mistake):
            loads.cache_clear()  # what it holds was built with the checks
            unchecked = numbers(compute())
            print("Without this check:", verdict(unchecked, numbers(exact), most, places))
    else:
        print(verdict(found, numbers(exact), most, places))
    finally:
        loads.cache_clear()


def watched(kernel, grid, block, *args, exact, out: str = "out", most: float = MOST) -> None:
    """Print what a trace finds wrong with a Numba kernel, and whether its result is right.

    args: as the launch takes them; out: the name of the argument that holds the result.
    """
    try:
        run = trace(kernel, grid, block, *args)
    except TraceError as mistake:
        print(mistake)
        return
    first, *others = run.problems or [""]
    if first:
        print(first + and_more(others))
    print(verdict(numbers(run.results[out]), numbers(exact), most))


def first_of(text: str) -> str:
    """The first of the errors that a run names, and how many follow: often one cause has several.

    text: what the CPU runtime or a compiler says, or any other text, which stays as it is.
    """
    before, *errors = BEGINS.split(text)
    if before.strip() or not errors:  # something else is said
        return text
    return errors[0].rstrip() + and_more(errors[1:])


def and_more(others) -> str:
    """That others follow; "" where none do."""
    if not others:
        return ""
    return f"\n(and {len(others)} more, often of the same cause: mend this one first)"


def verdict(found: np.ndarray, exact: np.ndarray, most: float = MOST, places=None) -> str:
    """Whether all values are right; else how many are not, the first of them, and where."""
    error = np.abs(found - exact)
    scale = np.abs(exact).max(initial=0) or 1
    wrong = ~(error <= most * scale)  # NaN is wrong
    if not wrong.any():
        share = error.max(initial=0) / scale
        return f"✓ right: {exact.size:,} values, off by {share:.0e} of the largest at most"
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    at = ", ".join(map(str, first))
    said = f"wrong: {wrong.sum():,} of {exact.size:,} values. The first is [{at}]: "
    said += f"{found[first]:.4g}, and {exact[first]:.4g} would be right"
    return f"{said}\n{places(wrong)}" if places else said


def numbers(array) -> np.ndarray:
    """An array of NumPy, Numba or torch as NumPy's, in float64 or complex128."""
    if hasattr(array, "copy_to_host"):
        array = array.copy_to_host()
    if hasattr(array, "detach"):
        array = (array if array.is_complex() else array.double()).cpu().numpy()
    return np.asarray(array, np.complex128 if np.iscomplexobj(array) else np.float64)


def sketch(wrong: np.ndarray) -> str:
    """A map of a picture, (lines, columns): x where it is wrong."""
    lines = ("".join(" x" if each else " ." for each in line) for line in wrong)
    return "\n".join(lines)
