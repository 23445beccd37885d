"""What rungs of the ladder reached: measured now, or recorded on a real GPU."""

import re
from dataclasses import dataclass

import numpy as np

from utils import results

#: In this order tables list the number formats.
KINDS = ("fp32", "tf32", "bf16", "fp16")
_SHARE = re.compile(r"matmul/(\w+)/(\d+)/(\w+)/share_of_cublas")


@dataclass(frozen=True)
class Measured:
    """What a rung reached.

    rate: FLOP/s.
    share: its speed divided by that of cuBLAS, on the same matrices in the same run.
    error: the largest error against float64, as a share of a typical element; None: not looked for.
    """

    rate: float
    share: float
    error: float | None = None


def recorded(folder=None) -> tuple[str, dict]:
    """(GPU and date, {(kind, n, rung): Measured}) of the newest recorded ladder.

    ("", {}) where there is none. folder: of the results files, the project's own unless given.
    """
    entries = [entry for entry in results.load(folder) if entry["name"].startswith("matmul/")]
    if not entries:
        return "", {}
    newest = max(entries, key=lambda entry: entry["date"])
    gpu = newest["gpu"]
    of_gpu = [entry for entry in entries if entry["gpu"] == gpu]
    values = {entry["name"]: entry["value"] for entry in of_gpu}
    known = {}
    for name in values:
        match = _SHARE.fullmatch(name)
        if match:
            kind = match[1]
            n = int(match[2])
            rung = match[3]
            cublas = values.get(f"matmul/{kind}/{n}/cublas/rate", np.nan)
            known |= _rung(values, kind, n, rung)
            known[kind, n, "cuBLAS"] = Measured(cublas, 1.0)
    return f"{gpu}, {newest['date'][:10]}", known


def _rung(
    values: dict[str, float],
    kind: str,
    n: int,
    rung: str,
) -> dict:
    """{(kind, n, rung): Measured} from recorded values; {} where its speed is missing."""
    path = f"matmul/{kind}/{n}/{rung}"
    if f"{path}/rate" not in values:
        return {}
    measured = Measured(
        rate=values[f"{path}/rate"],
        share=values[f"{path}/share_of_cublas"],
        error=values.get(f"{path}/error"),
    )
    return {(kind, n, rung): measured}


def is_recorded(path: str) -> bool:
    """Whether a GPU's time of a rung is known."""
    return bool(results.find(f"{path}/share_of_cublas") and results.find(f"{path}/rate"))


def recorded_line(path: str) -> str:
    """What is recorded of a rung, such as ``matmul/fp32/4096/tile``, in a line."""
    share = results.find(f"{path}/share_of_cublas")
    rate = results.find(f"{path}/rate")
    error = results.find(f"{path}/error")
    if not share or not rate:
        return "  no GPU, so no time, and nothing is recorded of it"
    place = f"{share['gpu']}, {share['date'][:10]}"
    speed = f"{rate['value'] / 1e12:.2f} TFLOP/s, {share['value']:.1%} of cuBLAS"
    remark = f"; error {error['value']:.1e}" if error else ""
    return f"  the course's own, recorded on {place}: {speed}{remark}"


def table(known: dict, kinds=KINDS) -> str:
    """Speed beside error for everything in {(kind, n, rung): Measured} whose error is known.

    By type and size, the slowest first; "" where nothing is known. kinds: number formats.
    """
    rows = []
    for (kind, n, rung), found in known.items():
        if kind in kinds and found.error is not None:
            rows.append((kind, n, rung, found))
    rows.sort(key=_place)
    return "\n".join(_row(*row) for row in rows)


def _place(row) -> tuple:
    """By kind, then by size, then the slowest first."""
    kind, n, _, found = row
    return KINDS.index(kind), n, found.rate


def _row(kind: str, n: int, rung: str, found: Measured) -> str:
    rate = f"{found.rate / 1e12:8.2f} TFLOP/s"
    return f"{kind}  {n:5}  {rung:16} {rate} {found.share:7.1%} of cuBLAS   error {found.error:.1e}"
