"""Holds what a change was said to bring against what it brought by the clock.

    python -m course.kernels.machine.changes      prints, and writes assets/recorded/changes.json

`utils.estimate.improving` says what a kernel would take with one thing changed. Of some kernels
the changed one is in the course, too, and both were timed. Which ones are in PAIRS was settled
before any of them was compared. Where the changed kernel has other changes besides, a pair is left
out; so are the kernels from which the model's exponent comes.
"""

import argparse
import json
import math
import statistics

from course.kernels.machine import cases_cuda_c
from course.kernels.machine.cases import cases
from course.kernels.machine.judge import GPUS, counts_of, measured
from utils import results
from utils.estimate import Unknown
from utils.estimate.gpus import gpu
from utils.estimate.improving import CHANGED, CHANGES
from utils.estimate.model import seconds_of, terms
from utils.files import write_whole

SIDE_BY_SIDE = "with its global accesses side by side"
NO_CONFLICTS = "without its bank conflicts"
FOUR_EACH = "with four numbers for each thread, 16 bytes at once"
ALL_PLACES = "with as many blocks as there is room for"
IN_BLOCKS = "with sums in each block first, and one addition of each"
SHUFFLES = "with shuffles, and two barriers"
TILES = "with tiles in shared memory"
#: (a kernel as it was, the change, the recorded kernel with this change)
PAIRS = (
    ("copy_ladder/numba", FOUR_EACH, "copy_ladder/numba_4_a_thread"),
    ("copy_ladder/cuda_c_float", FOUR_EACH, "copy_ladder/cuda_c_float4"),
    ("copy_stride/stride_2", SIDE_BY_SIDE, "copy_stride/stride_1"),
    ("copy_stride/stride_4", SIDE_BY_SIDE, "copy_stride/stride_1"),
    ("copy_stride/stride_8", SIDE_BY_SIDE, "copy_stride/stride_1"),
    ("copy_stride/stride_32", SIDE_BY_SIDE, "copy_stride/stride_1"),
    ("layout/aos", SIDE_BY_SIDE, "layout/soa"),
    ("transpose_ladder/naive", SIDE_BY_SIDE, "transpose_ladder/tile_padded"),
    ("transpose_ladder/tile", NO_CONFLICTS, "transpose_ladder/tile_padded"),
    ("axpy/numba_64_blocks", ALL_PLACES, "axpy/numba_a_thread_an_element"),
    ("axpy/cuda_c_64_blocks", ALL_PLACES, "axpy/cuda_c_a_thread_an_element"),
    ("vector_adds/one_block", ALL_PLACES, "vector_adds/many_blocks"),
    ("sums/a_thread_a_row", SIDE_BY_SIDE, "sums/a_thread_a_column"),
    ("histogram/numba_global_atomics", IN_BLOCKS, "histogram/numba_a_copy_for_each_block"),
    ("reduce/atomic/numba", IN_BLOCKS, "reduce/sequential/numba"),
    ("reduce/atomic/cuda_c", IN_BLOCKS, "reduce/sequential/cuda_c"),
    ("reduce/conflicts/numba", NO_CONFLICTS, "reduce/sequential/numba"),
    ("reduce/conflicts/cuda_c", NO_CONFLICTS, "reduce/sequential/cuda_c"),
    ("reduce/sequential/numba", SHUFFLES, "reduce/shuffle/numba"),
    ("reduce/sequential/cuda_c", SHUFFLES, "reduce/shuffle/cuda_c"),
    ("scan/hillis_steele/numba", SHUFFLES, "scan/shuffles/numba"),
    ("scan/hillis_steele/cuda_c", SHUFFLES, "scan/shuffles/cuda_c"),
    ("scan/blelloch/numba", SHUFFLES, "scan/shuffles/numba"),
    ("scan/blelloch/cuda_c", SHUFFLES, "scan/shuffles/cuda_c"),
    ("matmul/fp32/4096/numba_naive", SIDE_BY_SIDE, "matmul/fp32/4096/numba_coalesced"),
    ("matmul/fp32/4096/numba_coalesced", TILES, "matmul/fp32/4096/numba_tile"),
)


def changed_seconds(counted, words, card) -> float:
    """Seconds of launches one after the other, each with the change where it can be made."""
    change = CHANGES[words]
    new = [change(one, card) or one for one in counted]
    return seconds_of([terms(one, card) for one in new])


def rows_of(case, counted, words, after) -> list[dict]:
    """What a change was said to bring and what it brought, on each GPU that has both times."""
    rows = []
    for name in GPUS:
        card = gpu(name)
        took, then = measured(case.name, name), measured(after, name)
        if took is None or then is None:
            continue
        now = seconds_of([terms(one, card) for one in counted])
        rows.append(
            {
                "name": case.name,
                "change": words,
                "after": after,
                "gpu": name,
                "said": now / changed_seconds(counted, words, card),
                "brought": took / then,
            }
        )
    return rows


def compared() -> tuple[list[dict], dict]:
    """(a row for each pair and GPU, name -> why nothing was said)."""
    known = {case.name: case for case in (*cases(), *cases_cuda_c.cases())}
    rows, unknown, counted = [], {}, {}
    for name, words, after in PAIRS:
        try:
            if name not in counted:
                counted[name] = counts_of(known[name])
        except Unknown as reason:
            unknown[name] = str(reason)
            continue
        rows += rows_of(known[name], counted[name], words, after)
    return rows, unknown


def off(row) -> float:
    """By which factor what was said is off, above or below."""
    ratio = row["said"] / row["brought"]
    return max(ratio, 1 / ratio)


def summary(rows) -> dict:
    """How far off they are, and how often a change that was said to help helped."""
    factors = sorted(map(off, rows))
    return {
        "changes": len(rows),
        "median_factor": statistics.median(factors),
        "p90_factor": factors[math.ceil(0.9 * len(factors)) - 1],
        "same_way": sum((row["said"] > 1) == (row["brought"] > 1) for row in rows),
    }


def main() -> None:
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    rows, unknown = compared()
    for row in rows:
        said, brought = (f"{row[key]:7.2f}" for key in ("said", "brought"))
        print(f"{row['gpu']} {row['name']:36} said {said}, brought {brought}  {row['change']}")
    for name, reason in unknown.items():
        print(f"no estimate: {name}: {reason}")
    by_gpu = {name: summary([row for row in rows if row["gpu"] == name]) for name in GPUS}
    print(by_gpu)
    content = {"date": results.now(), "gpus": by_gpu, "changes": rows, "unknown": unknown}
    write_whole(CHANGED, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
