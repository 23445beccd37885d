"""Check and time one product in several languages, as shares of cuBLAS in one run."""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

from course.kernels.bench.report import Report, measured
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
from course.kernels.tiles import matmul
from course.kernels.tiles.parallel import at_once
from utils import compare, cuda_c, has_gpu, machine, pick, timing
from utils.timing import speedup

#: (m, n, k) whose tiles hang over every edge; rows begin at multiples of 16 bytes
SHAPES = (
    *EVEN_SIZES,
    (1000, 1032, 520),
    (256, 512, 64),
    (2048, 264, 1000),
)
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
    gpu=(
        ((128, 256, 64), 8, 3),
        ((128, 256, 64), 8, 4),
        ((128, 128, 64), 4, 4),
    ),
    cpu=TILES,
)
PERSISTENT = (
    {"halves": True, "flatten": True},
    {"halves": True, "flatten": False},
    {"halves": False, "flatten": True},
    {
        "halves": True,
        "flatten": True,
        "group": 16,
    },
)
COMPILED_AT = 512  # a small product of the timed ones' kind
CUTILE_TILES = (
    (128, 256, 64),
    (256, 128, 64),
    (128, 128, 64),
    (128, 128, 128),
)
#: Whether blocks stay, and how many share a tile. (With both, cuda-tile 1.7 kept a bench waiting.)
CUTILE_BLOCKS = ((False, 1), (False, 2), (True, 1))
SWEEP_SECONDS = 0.8
RACE_SECONDS = 1.0
PATIENCE = 6  # seconds that must be left to begin another race
HOPPER_THREADS = 384
HOPPER_SHARED = 229_440  # bytes


def triton_variants(tiles=None) -> dict[str, Callable[[], Multiply]]:
    """What to try of Triton, by name."""
    variants = {}
    for tile, warps, stages in tiles or TILES:
        sides = "x".join(map(str, tile))
        label = f"{sides} w{warps} s{stages}"
        how = {"warps": warps, "stages": stages}
        variants[f"pointers {label}"] = partial(matmul.with_pointers, *tile, **how)
        variants[f"descriptors {label}"] = partial(matmul.with_descriptors, *tile, **how)
        for more in PERSISTENT:
            words = " ".join(f"{name}={int(value)}" for name, value in more.items())
            make = partial(matmul.persistent, *tile, **how, **more)
            variants[f"persistent {label} {words}"] = make
    return variants


def gluon_variants() -> dict[str, Callable[[], Multiply]]:
    """What to try of Gluon, by name; nothing where there is no GPU: it has no interpreter."""
    if not has_gpu():
        return {}
    from course.kernels.tiles import gluon_matmul

    variants = {}
    for stages, parts in ((4, 2), (3, 1), (4, 4)):
        for group in (8, 16):
            make = partial(gluon_matmul.with_gluon, stages, group, parts)
            variants[f"gluon s{stages} p{parts} g{group}"] = make
    return variants


def cutile_variants() -> dict[str, Callable[[], Multiply]]:
    """What to try of cuTile, by name; nothing where its package or a GPU is missing."""
    if not has_gpu() or not find_spec("cuda.tile"):
        return {}
    from course.kernels.tiles.cutile.launching import with_cutile

    variants = {}
    for tile in CUTILE_TILES:
        sides = "x".join(map(str, tile))
        for persistent, ctas in CUTILE_BLOCKS:
            make = partial(with_cutile, *tile, persistent=persistent, num_ctas=ctas)
            variants[f"cutile {sides} persistent={int(persistent)} ctas={ctas}"] = make
    return variants


def cute_variants() -> dict[str, Callable[[], Multiply]]:
    """CuTe DSL's product, by name; nothing where its packages or a GPU are missing.

    One only: they are made in threads, and two compilations at once would end the process.
    """
    if not has_gpu():
        return {}
    if not find_spec("nvidia_cutlass_dsl") or not find_spec("tvm_ffi"):
        print("CuTe DSL is left out: pip install 'cuda-course[tiles]' brings it")
        return {}
    from course.kernels.tiles.cute.launching import with_cute

    return {"cute": with_cute}


def cuda_c_variants() -> dict[str, Callable[[], Multiply]]:
    """The tensor cores chapter's kernels: portable, and for Hopper."""
    variants = {"cuda_c_portable": partial(mma_launcher, "mma_bf16")}
    if has_gpu():
        variants["cuda_c"] = _hopper
    return variants


def _hopper(cluster: int = 2, group: int = 8) -> Multiply:
    flags = (f"-DCLUSTER={cluster}", f"-DGROUP={group}", "-DTMA_STORE=1")
    kernel = cuda_c.load(CUDA_KERNELS / "hopper.cu", flags=flags).matmul

    def multiply(c, a, b):
        m, n, k = sizes(a, b)
        tiles = blocks(m, 128 * cluster) * blocks(n, 256)
        rounds = blocks(tiles, machine().sms // cluster)
        grid = cluster * blocks(tiles, rounds)
        launch = kernel[grid, HOPPER_THREADS, HOPPER_SHARED]
        launch(c, map_of(c, 64), map_of(a, 128), map_of(b, 64), m, n, k)

    return multiply


def ready(report: Report, variants: dict[str, Callable]) -> dict[str, Multiply]:
    """The variants that compile and are right, in sizes of all kinds."""
    shapes = ((COMPILED_AT, COMPILED_AT, COMPILED_AT), *SHAPES)

    def try_one(name):
        multiply = variants[name]()
        prove(name, multiply, shapes, "bf16")
        return multiply

    def made_or_none(name):
        return report.attempt(f"right? {name}", try_one, name)

    right = {}
    for name, multiply in zip(variants, at_once(made_or_none, variants), strict=True):
        if multiply:
            right[name] = multiply
    known = report.entries["checks"].get("matmul", [])
    report.put("checks", "matmul", sorted([*known, *right]))
    return right


def sweep(
    report: Report,
    variants: dict[str, Multiply],
    n: int,
) -> list[str]:
    """Shares of cuBLAS of all variants at one size; returns their names, fastest first."""
    timing.BUDGET = SWEEP_SECONDS
    timings = _timed(variants, n, None)
    shares = {name: speedup(timing, timings["cublas"])[0] for name, timing in timings.items()}
    ranked = sorted(shares, key=shares.get, reverse=True)
    rounded = {name: round(shares[name], 4) for name in ranked}
    report.put("sweeps", f"matmul/{n}", rounded)
    return ranked


def race(
    report: Report,
    languages: dict[str, Multiply],
    n: int,
) -> None:
    """One contestant a language, cuBLAS among them; recorded."""
    timing.BUDGET = RACE_SECONDS
    report.attempt(f"race {n}", _race, report, languages, n)


def _race(
    report: Report,
    languages: dict[str, Multiply],
    n: int,
) -> None:
    for name, multiply in languages.items():
        prove(name, multiply, [(n, n, n)], "bf16")
    path = f"languages/matmul/bf16/{n}"
    timings = _timed(languages, n, path)
    entry = {}
    for name, found in timings.items():
        share, spread = speedup(found, timings["cublas"])
        report.record(f"{path}/{name}/share_of_cublas", share, spread=spread)
        entry[name] = measured(found) | {"share": share}
    report.put("races", f"matmul/{n}", entry)


def _timed(
    variants: dict[str, Multiply],
    n: int,
    name: str | None,
) -> dict:
    """The variants' times beside cuBLAS's, in turn."""
    c, a, b = operands(n, n, n, "bf16")
    runs = {}
    for label, multiply in variants.items():
        runs[label] = partial(multiply, c, a, b)
    runs["cublas"] = partial(cublas, c, a, b)
    return compare(runs, flops=2 * n**3, name=name).timings


def table(report: Report) -> list[str]:
    """The fastest variants of each sweep."""
    lines = []
    for label, shares in report.entries["sweeps"].items():
        if label.startswith("matmul"):
            fastest = list(shares.items())[:5]
            lines += [f"{label:<14} {share:.3f} {name}" for name, share in fastest]
    return lines
