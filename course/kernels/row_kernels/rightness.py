"""Are the row kernels right? Every operation against float64, in sizes of all kinds.

`bench` asks this before it times anything. Without a GPU the classic kernels are checked.
"""

import torch

from course.kernels.bench.report import Report
from course.kernels.row_kernels import fast
from course.kernels.row_kernels.operations import (
    OPERATIONS,
    Operation,
    in_float64,
    rows_of,
    tensors,
)
from course.kernels.row_kernels.precompile import Compiler
from course.kernels.row_kernels.shapes import CLUSTERS, Shape, shape_for
from utils import check, pick

DEVICE = pick(gpu="cuda", cpu="cpu")
DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
SMALL_COLUMNS = pick(
    gpu=(1, 2, 3, 31, 32, 33, 127, 768, 1008, 1023, 1024, 4096, 5120, 50257, 50304, 131072),
    cpu=(1, 31, 127, 768),
)
SMALL_ROWS = (0, 1, 17, 1021)
CLUSTER_COLUMNS = (1008, 50304, 131072)  # checked with each size of cluster
SPECIAL_COLUMNS = pick(
    gpu=(100, 127, 4096, 50257, 131072),
    cpu=(100, 127),
)
LARGEST = 1 << 22  # elements of a matrix


def small_sizes() -> list[tuple[int, int, torch.dtype]]:
    """Rows, columns and type of the matrices to check; those of the fast kernels last."""
    sizes = [
        (rows, columns, dtype)
        for dtype in DTYPES.values()
        for columns in SMALL_COLUMNS
        for rows in SMALL_ROWS
        if rows * columns <= LARGEST
    ]
    return sorted(sizes, key=lambda size: size[1] % 4 == 0)


def check_small(report: Report, compiler: Compiler | None) -> None:
    """Every operation in every small size, in the shapes that a size can have."""
    for rows, columns, dtype in small_sizes():
        check_size(report, compiler, rows, columns, dtype)
    check_special(report)


def check_size(
    report: Report,
    compiler,
    rows: int,
    columns: int,
    dtype: torch.dtype,
) -> None:
    """Every operation in one size."""
    t = tensors(rows, columns, dtype, DEVICE)
    for operation in OPERATIONS.values():
        shapes = shapes_to_check(operation, rows, columns, dtype)
        if compiler:
            compiler.wait(operation, shapes, dtype)
        for shape in shapes:
            name = f"{operation.name} {rows} x {columns} {dtype} {shape}"
            try:
                verify(operation, t, operation.ours(poisoned(t), shape))
            except Exception as error:
                report.failed(name, error)
            else:
                done = report.entries["checks"].get(operation.name, 0)
                report.put("checks", operation.name, done + 1)


def check_special(report: Report) -> None:
    """NaN and infinities, alone and all over a row, as torch has them."""
    for columns in SPECIAL_COLUMNS:
        t = tensors(6, columns, torch.float32, DEVICE, special=True)
        for operation in OPERATIONS.values():
            outputs = operation.ours(t, None)[: operation.row_outputs]
            wants = operation.reference(in_float64(t))
            try:
                for out, want in zip(outputs, wants, strict=False):
                    want = want.to(out.dtype)
                    torch.testing.assert_close(
                        out,
                        want,
                        rtol=1e-3,
                        atol=1e-5,
                        equal_nan=True,
                    )
            except AssertionError as error:
                report.failed(f"{operation.name}, NaN and infinities, {columns} columns", error)


def shapes_to_check(
    operation: Operation, rows: int, columns: int, dtype: torch.dtype
) -> list[Shape]:
    """The operation's own shape; for some lengths also one for each size of cluster."""
    if not fast.available() or rows == 0:
        return [None]
    kept = 16 if operation.inputs == 2 else 32
    clusters = CLUSTERS if columns in CLUSTER_COLUMNS and dtype == torch.float32 else ()
    shapes = [
        shape_for(
            columns, dtype.itemsize, inputs=operation.inputs, kept=kept, cluster=cluster, ring=ring
        )
        for cluster in (None, *clusters)
        for ring in (True, False)
    ]
    if operation.twice:
        shapes.append(
            shape_for(
                columns,
                dtype.itemsize,
                ring=False,
                threads=1024,
                twice=True,
            )
        )
    return [None, *dict.fromkeys(shape for shape in shapes if shape)]


def poisoned(t: dict) -> dict:
    """The same tensors, after memory that the outputs will likely get was filled with NaN."""
    for _ in range(2):
        torch.full_like(t["x"], float("nan"))
    return t


def verify(
    operation: Operation, t: dict, outputs: tuple, rows: int = 64, sums: bool = True
) -> None:
    """Compare outputs with float64: the first and the last rows, and the sums over all rows.

    Raises check.CheckError.
    """
    count, columns = t["x"].shape
    starts = (0, max(0, count - rows)) if count > 2 * rows else (0,)
    stop = rows if count > 2 * rows else count
    backward = operation.inputs == 2
    scale = amplification(operation, t) if count else 1.0
    for start in starts:
        part = in_float64(rows_of(t, start, start + stop))
        wants = operation.reference(part)[: operation.row_outputs]
        for out, want in zip(outputs, wants, strict=False):
            compare_tensors(out[start : start + stop], want, columns, scale)
    for out in outputs:
        if not bool(out.isfinite().all()):
            raise check.CheckError("an output is not finite", [])
    if backward and sums and count:
        chunk = max(1, (1 << 24) // columns)
        totals = [0] * (len(outputs) - 1)
        for start in range(0, count, chunk):
            part = in_float64(rows_of(t, start, start + chunk))
            for i, value in enumerate(operation.reference(part)[1:]):
                totals[i] = totals[i] + value
        for out, want in zip(outputs[1:], totals, strict=True):
            compare_tensors(out, want, count, scale)


def amplification(operation: Operation, t: dict) -> float:
    """By how much a norm enlarges the rounding error of what it divides by a small deviation."""
    if "norm" not in operation.name:
        return 1.0
    inverse = max(float(t[name].max()) for name in ("inverses", "rms_inverses"))
    return max(1.0, inverse) ** operation.inputs  # the backward pass multiplies twice


def compare_tensors(out, want, terms: int, scale: float = 1.0) -> None:
    """Within the rounding of `terms` additions of numbers as large as these, or as `scale`."""
    if out.numel() == 0:
        return
    unit = torch.finfo(out.dtype).eps
    size = max(scale, float(want.abs().max()))
    # float32 sums in trees and in chunks: an error grows with the square root of the terms at most
    bound = 4 * unit * size + 2e-7 * size * terms**0.5
    error = float((out.double() - want).abs().max())
    if not error <= bound:
        raise check.CheckError(f"the largest error is {error:.3g}, the bound {bound:.3g}", [])
