"""Check and time the convolutions against cuDNN on this GPU.

    python -m course.kernels.convolution.bench --out results.json --part product

In turn: every kernel is checked in small sizes of all kinds, then the raced shapes are checked
and timed with cuDNN's best algorithm (torch, channels-last, cudnn.benchmark). Each result is
written as soon as it is there. One failure ends nothing.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch
import torch.nn.functional as F

from course.kernels.bench import races
from course.kernels.bench.command import command_line, table
from course.kernels.bench.report import Report
from course.kernels.convolution import (
    classic,
    depthwise,
    hopper,
    implicit,
    numba_classic,
    winograd,
)
from course.kernels.convolution.hopper import NARROW, USUAL, WIDE, Tile
from course.kernels.convolution.rightness import nchw, nhwc, references, tensors, terms, verify
from course.kernels.convolution.shapes import RACED, Convolution
from utils import timing

DEVICE = "cuda"
SMALL = {
    "odd": Convolution(3, 72, 13, 9, 40),
    "one": Convolution(1, 8, 1, 1, 8, side=1, padding=0),
    "prime": Convolution(2, 136, 11, 17, 264),
    "stride 2": Convolution(2, 64, 15, 13, 72, stride=2),
    "dilation 2": Convolution(2, 64, 15, 13, 72, padding=2, dilation=2),
    "valid": Convolution(1, 64, 12, 10, 64, padding=0),
    "5x5": Convolution(2, 32, 9, 10, 24, side=5, padding=2),
}
SMALL_HALO = {
    "56": Convolution(2, 64, 56, 56, 64),
    "odd": Convolution(3, 64, 13, 9, 64),
    "rows": Convolution(1, 64, 7, 56, 64),
    "valid": Convolution(2, 64, 20, 31, 64, padding=0),
    "one": Convolution(1, 64, 1, 1, 64),
}
#: (n, h, w, c) and the filter's side
SMALL_DEPTHWISE = (
    ((2, 13, 9, 6), 3),
    ((3, 1, 1, 2), 7),
    ((1, 17, 23, 66), 7),
    ((2, 13, 61, 72), 3),
    ((1, 2, 115, 8), 7),
    ((3, 1, 1, 8), 5),
)
FORWARD = {
    "256x28": {"wide": WIDE, "usual": USUAL},
    "512x14": {"wide": WIDE, "usual": USUAL},
    "64x56": {"narrow": NARROW},
    "256x56_1x1": {
        "narrow": NARROW,
        "narrow3": Tile(3, 64, 5, 1),
    },
}
BACKWARD = FORWARD | {
    "256x56_1x1": {
        "wide": WIDE,
        "usual": USUAL,
    }
}
DEPTHWISE_PICTURES = (64, 56, 56, 256)
#: (columns, rows) of a thread of depthwise.cu
WALKS = {
    3: [(8, 14), (8, 28), (4, 28)],
    7: [(8, 56), (4, 28)],
}
#: (blocks of an SM, stages, columns of a warp) of depthwise_hopper.cu
RINGS = {
    3: [(1, 6, 7), (2, 4, 7)],
    7: [(1, 6, 7)],
}


PATIENCE = 30  # seconds without a result

# ---- right?


def proved(report: Report, name: str, t, conv, kind, make, exact):
    """What `make` made, if its result is right, else None; the report keeps the error."""
    t[kind].fill_(torch.nan)

    def work():
        run = make()
        run()
        torch.cuda.synchronize()
        share = verify(t[kind], exact, terms(conv, kind))
        report.put("checks", name, round(share, 3))
        return run

    return report.attempt(name, work)


def small_products(report: Report) -> None:
    """Result and data gradient, in sizes that fill no tile."""
    tiles = {
        "wide": WIDE,
        "usual": USUAL,
        "narrow": NARROW,
    }
    for label, conv in SMALL.items():
        t = tensors(conv, DEVICE)
        exact = references(t, conv, ("y", "dx"))
        forward = partial(hopper.forward, *of(t, "y"), conv)
        backward = partial(hopper.data_gradient, *of(t, "dx"), conv)
        for name, tile in tiles.items():
            what = f"fprop {label} {name}"
            proved(report, what, t, conv, "y", partial(forward, tile), exact["y"])
            if conv.stride == 1:
                what = f"dgrad {label} {name}"
                proved(report, what, t, conv, "dx", partial(backward, tile), exact["dx"])


#: Of each result the tensors that its kernels take
OPERANDS = {
    "y": ("y", "x", "w"),
    "dx": ("dx", "dy", "w"),
    "dw": ("dw", "dy", "x"),
}


def of(t: dict, kind: str) -> list[torch.Tensor]:
    """The result, and what it is computed from."""
    return [t[name] for name in OPERANDS[kind]]


def small_weights(report: Report) -> None:
    """The weights' gradient, in sizes that fill no tile."""
    tiles = {
        "usual": hopper.WeightsTile(),
        "few": hopper.FEW_FILTERS,
    }
    for label, conv in SMALL.items():
        t = tensors(conv, DEVICE)
        exact = references(t, conv, ("dw",))["dw"]
        gradient = partial(hopper.weights_gradient, *of(t, "dw"), conv)
        for name, tile in tiles.items():
            what = f"wgrad {label} {name}"
            proved(report, what, t, conv, "dw", partial(gradient, tile), exact)


def small_depthwise(report: Report) -> None:
    """The depthwise kernel, in odd sizes."""
    for sizes, side in SMALL_DEPTHWISE:
        n, h, w, c = sizes
        x, weights = depthwise_tensors(sizes, side)
        y = torch.full_like(x, torch.nan)
        exact = depthwise_exact(x, weights, torch.float64)
        ways = {"walk": partial(depthwise.depthwise, height=5)}
        if c % 8 == 0:
            ways["ring"] = partial(hopper.depthwise, blocks=1)
        for name, make in ways.items():
            y.fill_(torch.nan)
            run = make(y, x, weights)
            run()
            error = verify(y, exact, side**2)
            report.put("checks", f"{name} {side} {h}x{w}x{c}", error)


def depthwise_tensors(sizes, side: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random pictures [n, h, w, c] and filters [side, side, c] in bfloat16."""
    x = torch.randn(sizes, device=DEVICE).bfloat16()
    weights = torch.randn(side, side, sizes[-1], device=DEVICE).bfloat16()
    return x, weights


def depthwise_filters(weights: torch.Tensor) -> torch.Tensor:
    """The same filters as PyTorch takes them: [c, 1, side, side]."""
    return weights.permute(2, 0, 1)[:, None].contiguous()


def depthwise_exact(x, weights, dtype: torch.dtype) -> torch.Tensor:
    """What PyTorch computes in a more precise type."""
    filters = depthwise_filters(weights).to(dtype)
    side = weights.shape[0]
    y = F.conv2d(
        nchw(x).to(dtype),
        filters,
        padding=side // 2,
        groups=len(filters),
    )
    return nhwc(y)


HALO = {
    "y": hopper.halo_forward,
    "dx": hopper.halo_data_gradient,
    "dw": hopper.halo_weights_gradient,
}


def small_halo(report: Report) -> None:
    """The kernels with a halo, in odd sizes."""
    for label, conv in SMALL_HALO.items():
        t = tensors(conv, DEVICE)
        exact = references(t, conv, tuple(HALO))
        for kind in HALO:
            for name, make in halo_ways(t, label, conv, kind).items():
                what = f"{kind} {label} {name}"
                proved(report, what, t, conv, kind, make, exact[kind])


# ---- races


def cudnn(t: dict, conv: Convolution, kind: str):
    """The rival: PyTorch's call of cuDNN, channels-last."""
    x = nchw(t["x"])
    w = nchw(t["w"])
    if kind == "y":
        return partial(F.conv2d, x, w, **conv.options)
    return partial(
        torch.ops.aten.convolution_backward,
        nchw(t["dy"]),
        x,
        w,
        None,
        [conv.stride] * 2,
        [conv.padding] * 2,
        [conv.dilation] * 2,
        False,
        [0, 0],
        1,
        [kind == "dx", kind == "dw", False],
    )


def product_ways(t: dict, label: str, conv: Convolution, kind: str) -> dict:
    """Our implicit matrix products, by name."""
    if kind == "dw":
        run = partial(hopper.weights_gradient, *of(t, kind), conv)
        usual = hopper.WeightsTile()
        return {
            "even": partial(run, usual),
            "stream-k": partial(run, usual, even=False),
            "few filters": partial(run, hopper.FEW_FILTERS),
        }
    if kind == "y":
        tiles = FORWARD[label]
        make = hopper.forward
    else:
        tiles = BACKWARD[label]
        make = hopper.data_gradient
    run = partial(make, *of(t, kind), conv)
    return {name: partial(run, tile) for name, tile in tiles.items()}


def halo_ways(t: dict, label: str, conv: Convolution, kind: str) -> dict:
    """The kernels with a halo, by name."""
    run = partial(HALO[kind], *of(t, kind), conv)
    ways = {"halo": run}
    if kind != "dw":
        ways["halo, not in turn"] = partial(run, in_turn=0)
    return ways


KINDS = {
    "y": "fprop",
    "dx": "dgrad",
    "dw": "wgrad",
}


def race_one(
    report: Report,
    label: str,
    conv: Convolution,
    kind: str,
    make_ways,
) -> None:
    """Ours against cuDNN: the best of ours is recorded under the chapter's name."""
    name = f"conv/{KINDS[kind]}/{label}"
    t = tensors(conv, DEVICE)
    precise = torch.float32
    if kind == "dw":
        precise = torch.float64  # its sums are long
    exact = references(t, conv, (kind,), precise)[kind]
    ways = make_ways(t, label, conv, kind)
    right = {}
    for way, make in ways.items():
        run = proved(report, f"{name} {way}", t, conv, kind, make, exact)
        if run:
            right[way] = run
    right["cudnn"] = cudnn(t, conv, kind)
    timings = races.race(report, name, right, flops=conv.flops)
    ours = set(right) - {"cudnn", "wmma"}
    record_best(report, f"{name}/share_of_cudnn", timings, ours, ["cudnn"])


def record_best(report: Report, name: str, timings: dict, ours, theirs) -> None:
    """Record how many times as fast as the fastest of theirs the fastest of ours is."""
    if ours:
        best = min(ours, key=lambda way: timings[way].median)
        races.record_speedup(report, name, timings, theirs, best)


def all_ways(t: dict, label: str, conv: Convolution, kind: str) -> dict:
    """Everything that can compute it fast, so that one race finds the best of ours."""
    ways = product_ways(t, label, conv, kind)
    if label == "64x56":
        ways |= halo_ways(t, label, conv, kind)
    return ways


def wmma_ways(t: dict, label: str, conv: Convolution, kind: str) -> dict:
    """The implicit products through wmma."""
    runs = {
        "y": implicit.forward,
        "dx": implicit.data_gradient,
        "dw": implicit.weights_gradient,
    }
    run = partial(runs[kind], *of(t, kind), conv)
    return {"wmma": lambda: run}


PICTURE_SIDE = 8192
PICTURE_ERROR = 1e-5
TAPS_SIDE = 5


def race_picture(report: Report) -> None:
    """A picture and one filter: the classic rungs, Numba's, and PyTorch's."""
    from numba import cuda

    picture = torch.rand(PICTURE_SIDE, PICTURE_SIDE, device=DEVICE)
    taps = torch.rand(TAPS_SIDE, TAPS_SIDE, device=DEVICE)
    out = torch.full_like(picture, torch.nan)
    views = [cuda.as_cuda_array(tensor) for tensor in (out, picture, taps)]
    by_value = classic.by_value(taps.cpu().numpy())
    ways = {"naive": partial(classic.naive, out, picture, taps)}
    for name in ("constant", "tiled", "registers"):
        ways[name] = partial(classic.RUNGS[name], out, picture, by_value)
    launch = numba_classic.grid_2d(picture)
    for kernel in (numba_classic.naive_2d, numba_classic.tiled_2d):
        name = kernel.py_func.__name__
        ways[f"{name}, numba"] = partial(kernel[launch], *views)
    batch = picture[None, None]
    filters = taps[None, None]
    padding = TAPS_SIDE // 2
    exact = F.conv2d(batch.double(), filters.double(), padding=padding)[0, 0]
    right = {}
    for name, run in ways.items():

        def work(name=name, run=run):
            out.fill_(torch.nan)
            run()
            largest = (out - exact).abs().max()
            share = (largest / PICTURE_ERROR).item()
            assert share < 1, f"error {share * PICTURE_ERROR}"
            report.put("checks", f"picture {name}", share)
            right[name] = run

        report.attempt(f"picture {name}", work)
    right["torch"] = partial(F.conv2d, batch, filters, padding=padding)
    name = "conv/picture/5x5"
    races.race(report, name, right, bytes=2 * picture.nbytes)


def race_winograd(report: Report) -> None:
    """Winograd in float32 against PyTorch's convolution, TF32 off."""
    conv = RACED["256x28"]
    t = tensors(conv, DEVICE, torch.float32)
    exact = references(t, conv, ("y",), torch.float64)["y"]
    filters = winograd.transformed_filters(t["w"])
    run = partial(winograd.winograd, t["y"], t["x"], filters)
    run()
    theirs = cudnn(t, conv, "y")
    typical = terms(conv, "y") ** 0.5

    def error_of(y) -> float:
        return (y - exact).abs().max().item() / typical

    errors = {
        "error": error_of(t["y"]),
        "cudnn error": error_of(nhwc(theirs())),
    }
    rivals = {"winograd": run, "cudnn": theirs}
    races.race(report, "conv/winograd/256x28", rivals, flops=conv.flops)
    report.put("checks", "winograd fp32 256x28", errors)


def race_depthwise(report: Report, side: int) -> None:
    """Our depthwise kernel against PyTorch's best mode: both layouts, with and without cuDNN."""
    name = f"conv/depthwise/{side}x{side}"
    x, weights = depthwise_tensors(DEPTHWISE_PICTURES, side)
    y = torch.full_like(x, torch.nan)
    exact = depthwise_exact(x[:2], weights, torch.float32)
    runs = {}
    for way, make in depthwise_ways(y, x, weights).items():

        def right(make=make, way=way):
            y.fill_(torch.nan)
            run = make()
            run()
            assert not y.isnan().any()
            error = verify(y[:2], exact, side**2)
            report.put("checks", f"{name} {way}", error)
            runs[way] = run

        report.attempt(f"{name} {way}", right)
    rivals = depthwise_rivals(x, weights)
    timings = races.race(report, name, runs | rivals, bytes=2 * x.nbytes)
    names = [f"conv/direct/depthwise_{side}x{side}/speedup_over_torch"]
    if side == 3:
        names.append("conv/direct/depthwise/speedup_over_torch")
    for each in names:
        record_best(report, each, timings, runs, rivals)


def depthwise_ways(y, x, weights) -> dict:
    """Our depthwise kernels in all their shapes; each makes its run."""
    side = weights.shape[0]
    given = (y, x, weights)
    ways = {}
    for wide, height in WALKS[side]:
        make = partial(depthwise.depthwise, *given, wide=wide, height=height)
        ways[f"walk {wide} wide, {height} high"] = make
    for blocks, stages, wide in RINGS[side]:
        make = partial(
            hopper.depthwise,
            *given,
            blocks=blocks,
            stages=stages,
            wide=wide,
        )
        ways[f"ring {blocks} blocks, {stages} stages, {wide} wide"] = make
    return ways


def depthwise_rivals(x, weights) -> dict:
    """PyTorch's modes."""
    side = weights.shape[0]
    filters = depthwise_filters(weights)
    filters_last = filters.contiguous(memory_format=torch.channels_last)
    options = {
        "padding": side // 2,
        "groups": len(filters),
    }
    first = partial(F.conv2d, nchw(x).contiguous(), filters, **options)
    last = partial(F.conv2d, nchw(x), filters_last, **options)
    return {
        "torch, nchw": first,
        "torch, nhwc": last,
        "torch, nchw, no cudnn": without_cudnn(first),
        "torch, nhwc, no cudnn": without_cudnn(last),
    }


def without_cudnn(run):
    def off():
        torch.backends.cudnn.enabled = False
        run()
        torch.backends.cudnn.enabled = True

    return off


def build(part: str) -> None:
    """Compile what will be needed, side by side."""
    with ThreadPoolExecutor(12) as pool:
        if part == "product":
            for tile in all_tiles():
                pool.submit(hopper._implicit, tile, False)
                pool.submit(hopper._implicit, tile, True)
        if part == "depthwise":
            for side, ways in WALKS.items():
                for wide, _ in ways:
                    pool.submit(depthwise.module, side, wide)


def all_tiles() -> set[Tile]:
    """Each tile that is raced, once."""
    tiles = set()
    for ways in (*FORWARD.values(), *BACKWARD.values()):
        tiles.update(ways.values())
    return tiles


def race_all(report: Report, labels, kinds, make_ways) -> None:
    for label in labels:
        for kind in kinds:
            if report.left() < 6:
                report.put("clock", f"not done: {label} {kind}", 0)
                continue
            work = (report, label, RACED[label], kind, make_ways)
            report.attempt(f"race {label} {kind}", race_one, *work)


def product(report: Report) -> None:
    report.attempt("small", small_products, report)
    race_all(report, RACED, ("y", "dx"), all_ways)


def weights(report: Report) -> None:
    report.attempt("small", small_weights, report)
    race_all(report, RACED, ("dw",), all_ways)


def halo(report: Report) -> None:
    report.attempt("small", small_halo, report)


def both_depthwise(report: Report) -> None:
    report.attempt("small", small_depthwise, report)
    for side in WALKS:
        if report.left() > 4:
            report.attempt(f"depthwise {side}", race_depthwise, report, side)


def first(report: Report) -> None:
    """What the chapter begins with."""
    report.attempt("picture", race_picture, report)
    report.attempt("winograd", race_winograd, report)
    race_all(report, ["256x28", "512x14"], KINDS, wmma_ways)


PARTS = {
    "first": first,
    "product": product,
    "weights": weights,
    "halo": halo,
    "depthwise": both_depthwise,
}


def main() -> None:
    parser = command_line(__doc__, 40)
    add = parser.add_argument
    add("--part", choices=PARTS, required=True)
    add("--race-seconds", type=float, default=0.4)
    options = parser.parse_args()
    report = Report(options.out, options.budget, PATIENCE)
    report.watch()
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 0
    torch.backends.cudnn.allow_tf32 = False
    timing.BUDGET = options.race_seconds
    start = time.monotonic()
    report.attempt("build", build, options.part)
    built = time.monotonic() - start
    report.put("clock", "built", round(built, 1))
    PARTS[options.part](report)
    seconds = time.monotonic() - start
    report.put("clock", "all", round(seconds, 1))
    show(options.part, report)


def show(part: str, report: Report) -> None:
    """Print what was found."""
    right = len(report.entries["checks"])
    failed = list(report.entries["errors"])
    print(part, "right:", right, "failed:", failed)
    print(table(report))


if __name__ == "__main__":
    main()
