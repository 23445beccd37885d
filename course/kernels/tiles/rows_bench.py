"""Check and time the Triton kernels that work on rows, beside torch and torch.compile."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import triton

from course.kernels.row_kernels.operations import LAYER_NORM, LAYER_NORM_BACKWARD, SOFTMAX, tensors
from course.kernels.row_kernels.report import Report
from course.kernels.row_kernels.rightness import DEVICE, verify
from course.kernels.tiles import layer_norm, softmax
from course.kernels.tiles.parallel import at_once
from utils import compare, pick, results, timing

COLUMNS = (1024, 4096, 16384, 65536)
ELEMENTS = 1 << 28  # of the matrix that is timed
SMALL_ROWS = pick(gpu=(1, 17, 1021), cpu=(1, 5))
SMALL_COLUMNS = pick(gpu=(1, 31, 127, 1008, 1024, 4096, 5120, 16384), cpu=(1, 31, 127))
LONG = 131072  # columns that softmax takes in pieces
WARPS = (4, 8, 16, 32)
FILLS = (1024, 2048, 4096, 8192)  # values a program
PIECES = (1024, 2048, 4096, 8192)
FEWEST, MOST, KEPT_OF_PIECE = 4, 64, 32  # values a thread
PROGRAMS_AN_SM = (1, 2, 4, 8, 16)
SWEEP_SECONDS, RACE_SECONDS = 0.2, 0.5


@dataclass(frozen=True)
class Rows:
    """An operation on rows: what it is (for reference and rivals), ours, and what to try."""

    operation: object
    run: Callable
    options: Callable[[int], list[dict]]


def _forward_options(columns: int) -> list[dict]:
    block = triton.next_power_of_2(columns)
    options = []
    for rows in sorted({max(1, fill // block) for fill in FILLS}):
        for warps in WARPS:
            if FEWEST <= rows * block / (32 * warps) <= MOST:  # values a thread
                options.append({"ROWS": rows, "BLOCK": block, "num_warps": warps})
    for piece in PIECES:
        for warps in WARPS:
            if piece < block and FEWEST <= piece / (32 * warps) <= KEPT_OF_PIECE:
                options.append({"PIECE": piece, "num_warps": warps})
    return options


def _backward_options(columns: int) -> list[dict]:
    multiprocessors = layer_norm.sms(torch.empty(0, device=DEVICE))
    block = triton.next_power_of_2(columns)
    return [
        {"programs": many * multiprocessors, "num_warps": warps}
        for many in PROGRAMS_AN_SM
        for warps in WARPS
        if 2 <= block / (32 * warps) <= 64
    ]


def _backward(t, **options):
    return layer_norm.layer_norm_backward(
        t["dy"], t["x"], t["gamma"], t["means"], t["inverses"], **options
    )


OPERATIONS = {
    "softmax": Rows(
        SOFTMAX, lambda t, **options: (softmax.softmax(t["x"], **options),), _forward_options
    ),
    "layernorm": Rows(
        LAYER_NORM,
        lambda t, **options: layer_norm.layer_norm(t["x"], t["gamma"], t["beta"], **options),
        _forward_options,
    ),
    "layernorm_backward": Rows(LAYER_NORM_BACKWARD, _backward, _backward_options),
}


def check(report: Report) -> None:
    """Every operation in small sizes of all kinds, against float64."""
    sizes = [(rows, columns) for columns in SMALL_COLUMNS for rows in SMALL_ROWS]
    dtypes = (torch.float32, torch.bfloat16)
    at_once(lambda columns: _check_size(report, 3, columns, torch.float32), SMALL_COLUMNS)
    for dtype in dtypes:
        for rows, columns in sizes:
            _check_size(report, rows, columns, dtype)
    _check_long(report)


def _check_size(report: Report, rows: int, columns: int, dtype: torch.dtype) -> None:
    t = tensors(rows, columns, dtype, DEVICE)
    for name, one in OPERATIONS.items():
        try:
            verify(one.operation, t, one.run(t))
        except Exception as error:
            report.failed(f"{name} {rows} x {columns} {dtype}", error)
        else:
            report.put("checks", name, report.entries["checks"].get(name, 0) + 1)


def _check_long(report: Report) -> None:
    columns = pick(gpu=LONG + 1, cpu=1 << 10)
    t = tensors(3, columns, torch.float32, DEVICE)
    t["x"] += 100  # a mean that is large beside the deviation
    piece = {"PIECE": pick(gpu=4096, cpu=256), "num_warps": 8}
    for name in ("softmax", "layernorm"):
        if not _right(report, name, OPERATIONS[name], t, piece):
            report.failed(f"{name} in pieces", AssertionError(columns))
    t["x"][1, 7] = -float("inf")
    _right(report, "softmax", OPERATIONS["softmax"], t, piece)


def sweep(report: Report, columns: int, names=tuple(OPERATIONS)) -> dict[str, dict]:
    """The fastest options of each operation for rows of this length."""
    t = tensors(ELEMENTS // columns, columns, torch.float32, DEVICE)
    return {name: _sweep_one(report, name, OPERATIONS[name], t) for name in names}


def _sweep_one(report: Report, name: str, one: Rows, t: dict) -> dict:
    columns = t["x"].shape[1]
    options = one.options(columns)
    small = tensors(64, columns, torch.float32, DEVICE)
    right = at_once(lambda option: _right(report, name, one, small, option), options)
    runs = {
        _words(option): lambda option=option: one.run(t, **option)
        for option, is_right in zip(options, right, strict=True)
        if is_right
    }
    timing.BUDGET = SWEEP_SECONDS
    timed = compare(runs, bytes=one.operation.bytes(t["x"])).timings
    rates = {words: round(found.bytes_per_second / 1e9) for words, found in timed.items()}
    ranked = sorted(rates, key=rates.get, reverse=True)
    report.put("sweeps", f"{name}/{columns}", {words: rates[words] for words in ranked})
    return next(option for option in options if _words(option) == ranked[0])


def _words(option: dict) -> str:
    return " ".join(f"{name}={value}" for name, value in option.items() if name != "BLOCK")


def _right(report: Report, name: str, one: Rows, t: dict, option: dict) -> bool:
    try:
        verify(one.operation, t, one.run(t, **option), rows=8)
    except Exception as error:
        report.failed(f"{name} {option}", error)
        return False
    return True


def race(report: Report, columns: int, best: dict[str, dict]) -> None:
    """The fastest options of each operation against torch and torch.compile; recorded."""
    t = tensors(ELEMENTS // columns, columns, torch.float32, DEVICE)
    for name, options in best.items():
        if report.left() < 8:
            report.put("clock", "not raced", f"{name}/{columns} and all after it")
            return
        try:
            _race_one(report, name, OPERATIONS[name], t, options)
        except Exception as error:
            report.failed(f"race {name}/{columns}", error)


def _race_one(report: Report, name: str, one: Rows, t: dict, options: dict) -> None:
    columns = t["x"].shape[1]
    verify(one.operation, t, one.run(t, **options))
    began = time.monotonic()
    compiled = _compiled(one.operation.compiled)
    verify(one.operation, t, compiled(t), rows=8)
    seconds = time.monotonic() - began
    runs = {
        "triton": lambda: one.run(t, **options),
        "torch": lambda: one.operation.eager(t),
        "compile": lambda: compiled(t),
    }
    timing.BUDGET = RACE_SECONDS
    found = compare(runs, bytes=one.operation.bytes(t["x"]), name=f"triton/{name}/{columns}")
    timed = found.timings
    entry = {
        label: {"ms": one.median, "GB/s": one.bytes_per_second / 1e9, "copy": one.share_of_copy}
        for label, one in timed.items()
    }
    for rival in ("torch", "compile"):
        entry[f"over_{rival}"] = _record_speedup(
            f"triton/{name}/{columns}/speedup_over_{rival}", timed[rival], timed["triton"]
        )
    entry |= {"options": _words(options), "compile seconds": round(seconds, 1)}
    report.put("races", f"{name}/{columns}", entry)


def _record_speedup(path: str, theirs, ours) -> float:
    value = theirs.median / ours.median
    spread = value * (theirs.spread / theirs.median + ours.spread / ours.median)
    results.append({"name": path, "value": value, "unit": "1", "spread": spread})
    return value


def _compiled(function):
    torch._dynamo.reset()
    mode = "max-autotune-no-cudagraphs"
    return torch.compile(lambda t: function(t), mode=mode, dynamic=False, fullgraph=True)


def table(report: Report) -> list[str]:
    """A line a race."""
    lines = []
    for label, entry in report.entries["races"].items():
        if label.startswith("matmul"):
            continue
        rates = "  ".join(
            f"{who} {entry[who]['GB/s']:5.0f}" for who in ("triton", "torch", "compile")
        )
        over = f"x torch {entry['over_torch']:.3f} x compile {entry['over_compile']:.3f}"
        share = entry["triton"]["copy"]
        lines.append(f"{label:<26} {rates}  {over}  copy {share:.0%}  {entry['options']}")
    return lines
