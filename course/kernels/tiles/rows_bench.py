"""Check and time the Triton kernels that work on rows, beside torch and torch.compile."""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import triton

from course.kernels.bench import races
from course.kernels.bench.report import Report
from course.kernels.row_kernels.operations import (
    LAYER_NORM,
    LAYER_NORM_BACKWARD,
    SOFTMAX,
    Operation,
    of,
    tensors,
    torch_compiled,
)
from course.kernels.row_kernels.rightness import DEVICE, verify
from course.kernels.tiles import layer_norm, softmax
from course.kernels.tiles.parallel import at_once
from utils import compare, pick, timing

COLUMNS = (1024, 4096, 16384, 65536)
ELEMENTS = 1 << 28  # of the matrix that is timed
SMALL_ROWS = pick(
    gpu=(1, 17, 1021),
    cpu=(1, 5),
)
SMALL_COLUMNS = pick(
    gpu=(1, 31, 127, 1008, 1024, 4096, 5120, 16384),
    cpu=(1, 31, 127),
)
LONG = 131072  # columns that softmax takes in pieces
WARPS = (4, 8, 16, 32)
FILLS = (1024, 4096, 8192)  # values a program
PIECES = (2048, 4096, 8192, 16384)
PIECE_WARPS = (8, 16, 32)
KEPT = (16384, 32768)  # columns of a row in pieces that registers keep
ROWS_AN_SM = (1, 2)  # of rows that a cache has no room for otherwise
LONG_ROW = 32768  # columns
FEW_REGISTERS = 32  # a thread: an SM then has room for all the threads that it may have
#: How whole rows are read: what the caches are asked, and whether a row is read again
WAYS = (
    {"KEEP": False},
    {"KEEP": True},
    {"KEEP": True, "AGAIN": True},
    {"KEEP": True, "AGAIN": True, "LEAVE": True},
)
#: Values a thread
FEWEST = 8
MOST = 64
MOST_OF_NORM = 32
FEWEST_OF_PIECE = 4
MOST_OF_PIECE = 16
PROGRAMS_AN_SM = (1, 2, 4, 8, 16)
SWEEP_SECONDS = 0.2
RACE_SECONDS = 0.5


@dataclass(frozen=True)
class Rows:
    """An operation on rows: what it is (for reference and rivals), ours, and what to try."""

    operation: Operation
    function: Callable
    options: Callable[[int], list[dict]]

    def run(self, t: dict, **options) -> tuple:
        """The outputs of ours, a tuple."""
        outputs = self.function(*of(t, *self.operation.arguments), **options)
        return outputs if isinstance(outputs, tuple) else (outputs,)


def _softmax_options(columns: int) -> list[dict]:
    options = _whole_rows(columns)
    for option in _pieces(columns):
        options += [option | few for few in _few_programs(columns)]
        for kept in KEPT:
            in_registers = values_a_thread(kept, option["num_warps"])
            if option["PIECE"] < kept < columns and in_registers <= MOST:
                with_kept = option | {"KEPT": kept}
                options += [with_kept | few for few in _few_programs(columns)]
    return options


def _few_programs(columns: int) -> list[dict]:
    """Long rows only a few at a time, so that a cache has room for them."""
    if columns < LONG_ROW:
        return [{}]
    return [{"programs": programs} for programs in ROWS_AN_SM]


def _norm_options(columns: int) -> list[dict]:
    options = []
    for option in _whole_rows(columns):
        values = values_a_thread(option["ROWS"] * option["BLOCK"], option["num_warps"])
        if values > MOST_OF_NORM:
            continue
        for way in WAYS:
            options.append(option | way)
            if way["KEEP"] and values <= FEW_REGISTERS / 2:
                options.append(option | way | {"maxnreg": FEW_REGISTERS})
    for option in _pieces(columns):
        options += [option, option | {"LEAVE": True}]
    return options


def _whole_rows(columns: int) -> list[dict]:
    block = triton.next_power_of_2(columns)
    options = []
    for rows in sorted({max(1, fill // block) for fill in FILLS}):
        for warps in WARPS:
            if FEWEST <= values_a_thread(rows * block, warps) <= MOST:
                whole = {"ROWS": rows, "BLOCK": block}
                options.append(whole | {"num_warps": warps})
    return options


def _pieces(columns: int) -> list[dict]:
    options = []
    for piece in PIECES:
        if piece > columns:
            break
        for warps in PIECE_WARPS:
            if FEWEST_OF_PIECE <= values_a_thread(piece, warps) <= MOST_OF_PIECE:
                options.append({"PIECE": piece, "num_warps": warps})
    return options


def values_a_thread(values: int, warps: int) -> float:
    """Of so many values of a program."""
    return values / (32 * warps)


def _backward_options(columns: int) -> list[dict]:
    multiprocessors = softmax.sms(torch.empty(0, device=DEVICE))
    block = triton.next_power_of_2(columns)
    options = []
    for many in PROGRAMS_AN_SM:
        programs = many * multiprocessors
        for warps in WARPS:
            if 2 <= values_a_thread(block, warps) <= 64:
                options.append(
                    {
                        "programs": programs,
                        "num_warps": warps,
                    }
                )
    return options


OPERATIONS = {
    "softmax": Rows(SOFTMAX, softmax.softmax, _softmax_options),
    "layernorm": Rows(LAYER_NORM, layer_norm.layer_norm, _norm_options),
    "layernorm_backward": Rows(
        LAYER_NORM_BACKWARD,
        layer_norm.layer_norm_backward,
        _backward_options,
    ),
}


def check(report: Report) -> None:
    """Every operation in small sizes of all kinds, against float64."""
    kinds = list(itertools.product(SMALL_COLUMNS, (torch.float32, torch.bfloat16)))
    at_once(lambda kind: _check_size(report, 3, *kind), kinds)  # compiles them all
    for columns, dtype in kinds:
        for rows in SMALL_ROWS:
            _check_size(report, rows, columns, dtype)
    _check_long(report)


def _check_size(
    report: Report,
    rows: int,
    columns: int,
    dtype: torch.dtype,
) -> None:
    t = tensors(rows, columns, dtype, DEVICE)
    checks = report.entries["checks"]
    for name, one in OPERATIONS.items():
        try:
            verify(one.operation, t, one.run(t))
        except Exception as error:
            report.failed(f"{name} {rows} x {columns} {dtype}", error)
        else:
            report.put("checks", name, checks.get(name, 0) + 1)


def _check_long(report: Report) -> None:
    columns = pick(gpu=LONG + 1, cpu=1 << 10)
    t = tensors(3, columns, torch.float32, DEVICE)
    t["x"] += 100  # a mean that is large beside the deviation
    piece = {
        "PIECE": pick(gpu=4096, cpu=256),
        "num_warps": 8,
    }
    for name in ("softmax", "layernorm"):
        if not _right(report, name, OPERATIONS[name], t, piece):
            report.failed(f"{name} in pieces", AssertionError(columns))
    t["x"][1, 7] = -float("inf")
    _right(report, "softmax", OPERATIONS["softmax"], t, piece)


def sweep(
    report: Report,
    columns: int,
    names=tuple(OPERATIONS),
) -> dict[str, dict]:
    """The fastest options of each operation for rows of this length."""
    t = timed_tensors(columns)
    best = {}
    for name in names:
        best[name] = _sweep_one(report, name, OPERATIONS[name], t)
    return best


def timed_tensors(columns: int) -> dict:
    """Inputs of the size that is timed."""
    return tensors(ELEMENTS // columns, columns, torch.float32, DEVICE)


def _sweep_one(report: Report, name: str, one: Rows, t: dict) -> dict:
    columns = t["x"].shape[1]
    options = one.options(columns)
    small = tensors(64, columns, torch.float32, DEVICE)
    right = at_once(lambda option: _right(report, name, one, small, option), options)
    runs = {}
    by_words = {}
    for option, is_right in zip(options, right, strict=True):
        if is_right:
            words = _words(option)
            by_words[words] = option
            runs[words] = partial(one.run, t, **option)
    timing.BUDGET = SWEEP_SECONDS
    timed = compare(runs, bytes=one.operation.bytes(t["x"])).timings
    rates = {words: round(found.bytes_per_second / 1e9) for words, found in timed.items()}
    ranked = sorted(rates, key=rates.get, reverse=True)
    report.put("sweeps", f"{name}/{columns}", {words: rates[words] for words in ranked})
    fastest = ranked[0]
    return by_words[fastest]


def _words(option: dict) -> str:
    named = {name: value for name, value in option.items() if name != "BLOCK"}
    return " ".join(f"{name}={value}" for name, value in named.items())


def _right(
    report: Report,
    name: str,
    one: Rows,
    t: dict,
    option: dict,
) -> bool:
    try:
        outputs = one.run(t, **option)
        verify(one.operation, t, outputs, rows=8)
    except Exception as error:
        report.failed(f"{name} {option}", error)
        return False
    return True


def race(
    report: Report,
    columns: int,
    best: dict[str, dict],
) -> None:
    """The fastest options of each operation against torch and torch.compile; recorded."""
    t = timed_tensors(columns)
    for name, options in best.items():
        if report.left() < 8:
            report.put("clock", "not raced", f"{name}/{columns} and all after it")
            return
        work = (report, name, OPERATIONS[name], t, options)
        report.attempt(f"race {name}/{columns}", _race_one, *work)


def _race_one(
    report: Report,
    name: str,
    one: Rows,
    t: dict,
    options: dict,
) -> None:
    columns = t["x"].shape[1]
    path = f"triton/{name}/{columns}"
    operation = one.operation
    verify(operation, t, one.run(t, **options))
    began = time.monotonic()
    compiled = torch_compiled(operation.compiled)
    verify(operation, t, compiled(t), rows=8)
    seconds = time.monotonic() - began
    runs = {
        "triton": partial(one.run, t, **options),
        "torch": partial(operation.eager, t),
        "compile": partial(compiled, t),
    }
    timing.BUDGET = RACE_SECONDS
    timings = races.race(report, path, runs, "triton", bytes=operation.bytes(t["x"]))
    for rival in ("torch", "compile"):
        races.record_speedup(report, f"{path}/speedup_over_{rival}", timings, [rival], "triton")
    compiled = [_words(options), round(seconds, 1)]
    report.put("clock", f"{path}: options, seconds to compile", compiled)
