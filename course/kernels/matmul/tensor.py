"""Rungs on tensor cores: which GPU can run them, and what to say where it cannot.

Not every GPU has every instruction. A rung that this machine cannot run is named with what it
needs, and its recorded result is shown instead.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from course.kernels.matmul import ladder as judge
from course.kernels.matmul.ladder import (
    EVEN_SIZES,
    Ladder,
    Multiply,
    blocks,
    launcher,
    operands,
    prove,
)
from course.kernels.matmul.records import recorded, recorded_line
from utils import hardware, has_gpu, machine, results
from utils.cuda_c.tensor_map import tensor_map
from utils.tools import source

KERNELS = Path(__file__).parent / "kernels"
#: Bytes of shared memory a block on the CPU runtime: few, so that tiles are small and quick.
CPU_SHARED = 48 << 10
CPU_SMS = 4  # there: several blocks, and several tiles for each


@dataclass(frozen=True)
class Needs:
    """What a rung needs of a GPU: the lowest compute capability, and perhaps a highest."""

    words: str
    lowest: tuple[int, int]
    highest: tuple[int, int] = (99, 0)

    def met(self) -> bool:
        """Whether this machine's GPU has it; False without a GPU."""
        return has_gpu() and self.lowest <= machine().gpu.compute_capability <= self.highest


VOLTA = Needs("compute capability 7.0", (7, 0))
AMPERE = Needs("compute capability 8.0", (8, 0))
HOPPER = Needs("a Hopper GPU (compute capability 9.0)", (9, 0), (9, 0))


def sixteen_bits() -> str:
    """What this machine's tensor cores multiply of 2 bytes: "bf16", or before Ampere "fp16"."""
    return "bf16" if not has_gpu() or AMPERE.met() else "fp16"


def sms() -> int:
    """SMs of this GPU; a few on the CPU runtime."""
    return machine().sms or CPU_SMS


def shared_limit() -> int:
    """Bytes of shared memory that a block may ask for: on this GPU, or on the CPU runtime."""
    if not has_gpu():
        return CPU_SHARED
    return hardware.shared_limit()


#: Macros of the mma.sync rungs for a GPU with less shared memory than a data centre's has
SMALL = {
    "mma_bf16": {"BN": 128, "BK": 32},
    "mma_tf32": {"BM": 128, "BK": 16},
}
ROOMY = 210_000  # bytes of shared memory a block that their usual sizes need
#: Of a number
BYTES = {
    "mma_bf16": 2,
    "mma_tf32": 4,
}


def mma_launcher(name: str, **switches: int) -> Multiply:
    """multiply(c, a, b) with an mma.sync rung: "mma_bf16" or "mma_tf32".

    switches: macros such as STAGES=2. Tiles are as large as this machine's shared memory allows,
    and the launch is computed from the sizes that the file has.
    """
    path = KERNELS / f"{name}.cu"
    macros = {}
    if shared_limit() < ROOMY:
        macros |= SMALL[name]
    if not has_gpu():
        macros["STAGES"] = 2
    macros |= switches
    its = source.constants(path, **macros)
    number_bytes = BYTES[name]
    return launcher(
        path,
        tile=(its["BM"], its["BN"]),
        threads=its["THREADS"],
        shared=its["STAGES"] * its["STAGE"] * number_bytes,
        flags=tuple(f"-D{macro}={value}" for macro, value in macros.items()),
        multiple=16 // number_bytes,
    )


@lru_cache(maxsize=3)
def map_of(matrix: torch.Tensor, rows: int):
    """The tensor map of a matrix, in boxes of `rows` × 64; made once, not at each launch."""
    return tensor_map(matrix, (rows, 64))


def climb(
    ladder: Ladder,
    name: str,
    make: Callable[[], Multiply],
    *,
    needs: Needs,
    kind: str = "bf16",
    sides=(4096, 8192),
    on_cpu: bool = False,
) -> None:
    """Climb a rung where this machine can; elsewhere say what it needs, and show what is recorded.

    make: compiles it and returns multiply(c, a, b); called only where it can run.
    on_cpu: the CPU runtime can run it too.
    """
    able = needs.met() if has_gpu() else on_cpu
    if able:
        ladder.add(name, make())
    else:
        print(_missing(name, needs))
    for n in sides:
        if able and (has_gpu() or n == sides[0]):
            ladder.climb(name, kind, n, shapes=EVEN_SIZES)
        else:
            recorded = recorded_line(f"matmul/{kind}/{n}/{name}")
            print(f"{kind}, {n}: {recorded.strip()}")


#: For kernels that may be wrong: several tiles and steps, and no multiple of either
SMALL_SIZES = ((136, 264, 200),)


def tried(make: Callable[[], Multiply], kind: str = "bf16", *, needs: Needs = VOLTA) -> None:
    """Say whether a kernel as it stands now is right: on one small product, against float64.

    make: compiles it and returns multiply(c, a, b). Without a GPU the CPU runtime's slow checks
    watch, and name the mistake with its line. Nothing is raised.
    """
    if has_gpu() and not needs.met():
        print(f"this needs {needs.words}")
        return
    judge.tried(make, kind, SMALL_SIZES)


def _missing(name: str, needs: Needs) -> str:
    if has_gpu():
        return f"{name} needs {needs.words}"
    return f"{name} needs {needs.words}, and there is no GPU"


def compare_switches(
    ladder: Ladder,
    makes: dict[str, Callable[[], Multiply]],
    beside: str,
    *,
    needs: Needs,
    n: int = 4096,
    on_cpu: bool = False,
) -> None:
    """Forms of a kernel that differ in a switch: check each in bf16, then time all of them in turn.

    makes: name -> what compiles it, as for `climb`. beside: the whole rung, printed last as it was
    measured before. Where they cannot be timed: as recorded.
    """
    able = needs.met() if has_gpu() else on_cpu
    if able:
        for name, make in makes.items():
            multiply = ladder.add(name, make())
            prove(name, multiply, EVEN_SIZES, "bf16")
        print(f"✓ right in each of {len(makes)} forms")
    if able and has_gpu():
        ladder.compare("bf16", n, list(makes))
    known = ladder.measured if able and has_gpu() else _announced()
    for name in (*makes, beside):
        print(f"{name:18} {_speed(known.get(('bf16', n, name)))}")


def shares(
    ladder: Ladder,
    n: int,
    names,
) -> tuple[str, dict[str, float]]:
    """(whose, {name: share of cuBLAS}) of rungs in bf16.

    As measured here if at least two of them were, else as recorded.
    """
    whose, known = ladder.known()
    of_names = _shares(known, n, names)
    if len(of_names) < 2:
        whose, known = recorded()
        of_names = _shares(known, n, names)
    return whose, of_names


def _shares(known: dict, n: int, names) -> dict[str, float]:
    shares = {}
    for name in names:
        measured = known.get(("bf16", n, name))
        if measured:
            shares[name] = measured.share
    return shares


def _announced() -> dict:
    whose, known = recorded()
    print(f"recorded on {whose}:" if whose else "nothing is recorded yet:")
    return known


def _speed(measured) -> str:
    if measured is None:
        return "not recorded yet"
    return f"{measured.rate / 1e12:7.1f} TFLOP/s, {measured.share:6.1%} of cuBLAS"


# ---- number formats


#: Of each format a product and the matrix that it is written to
Ways = dict[str, tuple[Callable[[], object], torch.Tensor]]


def three_formats(n: int) -> tuple[Ways, torch.Tensor]:
    """({name: (multiply, c)}, exact): an n × n × n product in fp32, TF32 and bf16, and in float64.

    All three begin with the same float32 numbers; multiply() fills c. Neither a CPU nor a GPU
    before Ampere has TF32: there the factors are rounded beforehand, as tensor cores would do.
    """
    c, a, b = operands(n, n, n)
    c_tf32 = torch.empty_like(c)
    c_bf16 = c.bfloat16()
    a_bf16 = a.bfloat16()
    b_bf16 = b.bfloat16()
    rounded = (a, b)
    if not AMPERE.met():
        rounded = (_to_tf32(a), _to_tf32(b))
    ways = {
        "fp32": (lambda: _multiply(c, a, b, tf32=False), c),
        "TF32": (lambda: _multiply(c_tf32, *rounded, tf32=True), c_tf32),
        "bf16": (lambda: torch.matmul(a_bf16, b_bf16, out=c_bf16), c_bf16),
    }
    return ways, a.double() @ b.double()


def _multiply(c, a, b, *, tf32: bool) -> None:
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.matmul(a, b, out=c)
    torch.backends.cuda.matmul.allow_tf32 = False


def _to_tf32(x: torch.Tensor) -> torch.Tensor:
    """Rounded to 10 bits after the point, halves away from zero."""
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


# ---- Hopper's rungs, in cycles


def cycles_a_step(ladder: Ladder, name: str, n: int = 4096) -> float | None:
    """Cycles that a Hopper rung took for a step along k, now or as recorded; None where neither.

    Steps are 64 deep, and an SM takes tiles of 128 × 256 in rounds. The clock is the one recorded
    of the fastest rung, on the same GPU.
    """
    if ("bf16", n, name) in ladder.measured:
        known = ladder.measured
        clock = results.find("matmul/clock/bf16_ours", machine().gpu.name)
    else:
        _, known = recorded()
        clock = results.find("matmul/clock/bf16_ours")  # of the topic of the rungs: of one GPU
    found = known.get(("bf16", n, name))
    if not found or not clock:
        return None
    sms = results.recorded_gpu(clock["gpu"])["sms"]
    tiles = blocks(n, 128) * blocks(n, 256)
    steps = blocks(tiles, sms) * blocks(n, 64)
    seconds = 2 * n**3 / found.rate
    return seconds * clock["value"] / steps
