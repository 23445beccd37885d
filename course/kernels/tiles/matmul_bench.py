"""Check and time one product in several languages, as shares of cuBLAS in one run."""

from collections.abc import Callable
from functools import partial

from course.kernels.matmul.ladder import (
    EVEN_SIZES,
    Multiply,
    blocks,
    cublas,
    operands,
    prove,
    sizes,
)
from course.kernels.matmul.ladder import KERNELS as CUDA_KERNELS
from course.kernels.matmul.tensor import map_of, mma_launcher
from course.kernels.row_kernels.report import Report
from course.kernels.tiles import matmul
from course.kernels.tiles.parallel import at_once
from utils import compare, cuda_c, has_gpu, machine, pick, results, timing

#: (m, n, k) whose tiles hang over every edge; rows begin at multiples of 16 bytes
SHAPES = (*EVEN_SIZES, (1000, 1032, 520), (256, 512, 64), (2048, 264, 1000))
#: Tiles (rows, columns, steps of k), warps and stages to try
TILES = pick(
    gpu=(
        ((128, 256, 64), 8, 3),
        ((128, 256, 64), 8, 4),
        ((256, 128, 64), 8, 3),
        ((256, 128, 64), 8, 4),
        ((128, 128, 64), 4, 4),
        ((128, 128, 64), 8, 4),
        ((128, 256, 128), 8, 2),
    ),
    cpu=(((128, 128, 64), 4, 2),),
)
#: Those of them that were best at some size, on an H200
BEST = pick(
    gpu=(((128, 256, 64), 8, 3), ((128, 256, 64), 8, 4), ((128, 128, 64), 4, 4)),
    cpu=TILES,
)
PERSISTENT = (
    {"halves": True, "flatten": True},
    {"halves": True, "flatten": False},
    {"halves": False, "flatten": True},
    {"halves": True, "flatten": True, "group": 16},
)
COMPILED_AT = 512  # a small product of the timed ones' kind
SWEEP_SECONDS, RACE_SECONDS = 0.8, 1.0
PATIENCE = 6  # seconds that must be left to begin another race


def triton_variants(tiles=None) -> dict[str, Callable[[], Multiply]]:
    """What to try of Triton, by name."""
    variants = {}
    for tile, warps, stages in tiles or TILES:
        label = "x".join(map(str, tile)) + f" w{warps} s{stages}"
        how = {"warps": warps, "stages": stages}
        variants[f"pointers {label}"] = partial(matmul.with_pointers, *tile, **how)
        variants[f"descriptors {label}"] = partial(matmul.with_descriptors, *tile, **how)
        for more in PERSISTENT:
            words = " ".join(f"{name}={int(value)}" for name, value in more.items())
            variants[f"persistent {label} {words}"] = partial(
                matmul.persistent, *tile, **how, **more
            )
    return variants


def gluon_variants() -> dict[str, Callable[[], Multiply]]:
    """What to try of Gluon, by name; nothing where there is no GPU: it has no interpreter."""
    if not has_gpu():
        return {}
    from course.kernels.tiles import gluon_matmul

    return {
        f"gluon s{stages} p{parts} g{group}": partial(gluon_matmul.with_gluon, stages, group, parts)
        for stages, parts in ((4, 2), (3, 1), (4, 4))
        for group in (8, 16)
    }


def cuda_c_variants() -> dict[str, Callable[[], Multiply]]:
    """The tensor cores chapter's kernels: portable, and for Hopper."""
    portable = {"cuda_c_portable": partial(mma_launcher, "mma_bf16")}
    return portable | {"cuda_c": _hopper} if has_gpu() else {}


def _hopper(cluster: int = 2, group: int = 8) -> Multiply:
    flags = f"-DCLUSTER={cluster}", f"-DGROUP={group}", "-DTMA_STORE=1"
    kernel = cuda_c.load(CUDA_KERNELS / "hopper.cu", flags=flags).matmul

    def multiply(c, a, b):
        m, n, k = sizes(a, b)
        tiles = blocks(m, 128 * cluster) * blocks(n, 256)
        rounds = blocks(tiles, machine().sms // cluster)
        grid = cluster * blocks(tiles, rounds)
        maps = map_of(c, 64), map_of(a, 128), map_of(b, 64)
        kernel[grid, 384, 229_440](c, *maps, m, n, k)

    return multiply


def ready(report: Report, variants: dict[str, Callable]) -> dict[str, Multiply]:
    """The variants that compile and are right, in sizes of all kinds."""
    n = COMPILED_AT

    def try_one(name):
        try:
            multiply = variants[name]()
            prove(name, multiply, ((n, n, n), *SHAPES), "bf16")
        except Exception as error:
            report.failed(f"right? {name}", error)
            return None
        return multiply

    made = dict(zip(variants, at_once(try_one, variants), strict=True))
    right = {name: multiply for name, multiply in made.items() if multiply}
    known = report.entries["checks"].get("matmul", [])
    report.put("checks", "matmul", sorted([*known, *right]))
    return right


def sweep(report: Report, variants: dict[str, Multiply], n: int) -> list[str]:
    """Shares of cuBLAS of all variants at one size; returns their names, fastest first."""
    timing.BUDGET = SWEEP_SECONDS
    shares = _shares(variants, n, None)[0]
    ranked = sorted(shares, key=shares.get, reverse=True)
    report.put("sweeps", f"matmul/{n}", {name: round(shares[name], 4) for name in ranked})
    return ranked


def race(report: Report, languages: dict[str, Multiply], n: int) -> None:
    """One contestant a language, cuBLAS among them; recorded."""
    timing.BUDGET = RACE_SECONDS
    try:
        for name, multiply in languages.items():
            prove(name, multiply, [(n, n, n)], "bf16")
        shares, rates, spreads = _shares(languages, n, f"languages/matmul/bf16/{n}")
    except Exception as error:
        report.failed(f"race {n}", error)
        return
    for name, share in shares.items():
        path = f"languages/matmul/bf16/{n}/{name}/share_of_cublas"
        results.append({"name": path, "value": share, "unit": "1", "spread": spreads[name]})
    entry = {name: {"share": shares[name], "TFLOP/s": rates[name] / 1e12} for name in shares}
    report.put("races", f"matmul/{n}", entry)


def _shares(variants: dict[str, Multiply], n: int, name: str | None) -> tuple[dict, dict, dict]:
    """Of each variant its share of cuBLAS, its FLOP/s and the share's spread."""
    c, a, b = operands(n, n, n, "bf16")
    runs = {
        label: lambda multiply=multiply: multiply(c, a, b) for label, multiply in variants.items()
    }
    runs["cublas"] = lambda: cublas(c, a, b)
    timed = compare(runs, flops=2 * n**3, name=name).timings
    theirs = timed["cublas"]
    shares = {label: theirs.median / found.median for label, found in timed.items()}
    rates = {label: found.flops_per_second for label, found in timed.items()}
    spreads = {
        label: shares[label] * (found.spread / found.median + theirs.spread / theirs.median)
        for label, found in timed.items()
    }
    return shares, rates, spreads


def table(report: Report) -> list[str]:
    """A line a size, and the fastest variants of each sweep."""
    lines = []
    for label, entry in report.entries["races"].items():
        if label.startswith("matmul"):
            shares = "  ".join(f"{name} {one['share']:.3f}" for name, one in entry.items())
            lines.append(f"{label:<14} {shares}  cublas {entry['cublas']['TFLOP/s']:.0f} TFLOP/s")
    for label, shares in report.entries["sweeps"].items():
        if label.startswith("matmul"):
            lines += [f"{label:<14} {share:.3f} {name}" for name, share in list(shares.items())[:5]]
    return lines
