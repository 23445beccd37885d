"""Check and time the convolutions against cuDNN on this GPU.

    python -m course.kernels.convolution.bench --out results.json --part product

In turn: every kernel is checked in small sizes of all kinds, then the raced shapes are checked
and timed with cuDNN's best algorithm (torch, channels-last, cudnn.benchmark). Each result is
written as soon as it is there. One failure ends nothing.
"""

import argparse
import json
import os
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F

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
from utils import compare, results, timing

DEVICE = "cuda"
PATIENCE = 30  # seconds without a result
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
    "256x56_1x1": {"narrow": NARROW, "narrow3": Tile(3, 64, 5, 1)},
}
BACKWARD = FORWARD | {"256x56_1x1": {"wide": WIDE, "usual": USUAL}}
DEPTHWISE_PICTURES = (64, 56, 56, 256)
#: (columns, rows) of a thread of depthwise.cu
WALKS = {3: [(8, 14), (8, 28), (4, 28)], 7: [(8, 56), (4, 28)]}
#: (blocks of an SM, stages, columns of a warp) of depthwise_hopper.cu
RINGS = {
    3: [(1, 6, 7), (2, 4, 7)],
    7: [(1, 6, 7)],
}


class Report:
    """What was found, written to a file after every entry."""

    def __init__(self, path: Path, budget: float):
        self.path = path
        self.latest = time.monotonic()
        self.ends = self.latest + budget
        self.entries = {"checks": {}, "races": {}, "errors": {}, "clock": {}}
        threading.Thread(target=self._watch, daemon=True).start()

    def put(self, kind: str, name: str, value) -> None:
        self.latest = time.monotonic()
        self.entries[kind][name] = value
        self.path.write_text(json.dumps(self.entries, indent=1))

    def attempt(self, name: str, work) -> None:
        """Do it; keep the error if it fails."""
        try:
            work()
        except Exception as error:
            text = "".join(traceback.format_exception_only(error))
            print(f"FAILED {name}: {text[:300]}", flush=True)
            self.put("errors", name, "".join(traceback.format_exception(error))[-3000:])

    def left(self) -> float:
        return self.ends - time.monotonic()

    def _watch(self) -> None:
        while time.monotonic() - self.latest < PATIENCE:
            time.sleep(1)
        print(f"nothing for {PATIENCE} s: given up", flush=True)
        os._exit(3)


# ---- right?


def proved(report: Report, name: str, t, conv, kind, make, exact):
    """What `make` made, if its result is right, else None; the report keeps the error."""
    t[kind].fill_(torch.nan)
    made = []

    def work():
        run = make()
        run()
        torch.cuda.synchronize()
        share = verify(t[kind], exact, terms(conv, kind))
        report.put("checks", name, round(share, 3))
        made.append(run)

    report.attempt(name, work)
    return made[0] if made else None


def small_products(report: Report) -> None:
    """Result and data gradient, in sizes that fill no tile."""
    tiles = {"wide": WIDE, "usual": USUAL, "narrow": NARROW}
    for label, conv in SMALL.items():
        t = tensors(conv, DEVICE)
        exact = references(t, conv, ("y", "dx"))
        for name, tile in tiles.items():
            run = partial(hopper.forward, t["y"], t["x"], t["w"], conv, tile)
            proved(report, f"fprop {label} {name}", t, conv, "y", run, exact["y"])
            if conv.stride == 1:
                run = partial(hopper.data_gradient, t["dx"], t["dy"], t["w"], conv, tile)
                proved(report, f"dgrad {label} {name}", t, conv, "dx", run, exact["dx"])


def small_weights(report: Report) -> None:
    """The weights' gradient, in sizes that fill no tile."""
    for label, conv in SMALL.items():
        t = tensors(conv, DEVICE)
        exact = references(t, conv, ("dw",))
        for name, tile in {"usual": hopper.WeightsTile(), "few": hopper.FEW_FILTERS}.items():
            run = partial(hopper.weights_gradient, t["dw"], t["dy"], t["x"], conv, tile)
            proved(report, f"wgrad {label} {name}", t, conv, "dw", run, exact["dw"])


def small_depthwise(report: Report) -> None:
    """The depthwise kernel, in odd sizes."""
    for (n, h, w, c), side in SMALL_DEPTHWISE:
        x = torch.randn(n, h, w, c, device=DEVICE).bfloat16()
        weights = torch.randn(side, side, c, device=DEVICE).bfloat16()
        y = torch.full_like(x, torch.nan)
        filters = weights.permute(2, 0, 1)[:, None].double()
        exact = nhwc(F.conv2d(nchw(x).double(), filters, padding=side // 2, groups=c))
        ways = {
            "walk": partial(depthwise.depthwise, height=5),
            "ring": partial(hopper.depthwise, blocks=1),
        }
        for name, make in ways.items():
            if name == "ring" and c % 8:
                continue
            y.fill_(torch.nan)
            make(y, x, weights)()
            report.put("checks", f"{name} {side} {h}x{w}x{c}", verify(y, exact, side**2))


HALO = {
    "y": (hopper.halo_forward, ("y", "x", "w")),
    "dx": (hopper.halo_data_gradient, ("dx", "dy", "w")),
    "dw": (hopper.halo_weights_gradient, ("dw", "dy", "x")),
}


def small_halo(report: Report) -> None:
    """The kernels with a halo, in odd sizes."""
    for label, conv in SMALL_HALO.items():
        t = tensors(conv, DEVICE)
        exact = references(t, conv, tuple(HALO))
        for kind in HALO:
            for name, make in halo_ways(t, label, conv, kind).items():
                proved(report, f"{kind} {label} {name}", t, conv, kind, make, exact[kind])


# ---- races


def cudnn(t: dict, conv: Convolution, kind: str):
    """The rival: PyTorch's call of cuDNN, channels-last."""
    x, w, dy = nchw(t["x"]), nchw(t["w"]), nchw(t["dy"])
    if kind == "y":
        return lambda: F.conv2d(x, w, **conv.options)
    both = [conv.padding] * 2, [conv.dilation] * 2
    mask = [kind == "dx", kind == "dw", False]
    backward = torch.ops.aten.convolution_backward
    return lambda: backward(dy, x, w, None, [conv.stride] * 2, *both, False, [0, 0], 1, mask)


def product_ways(t: dict, label: str, conv: Convolution, kind: str) -> dict:
    """Our implicit matrix products, by name."""
    if kind == "dw":
        run = partial(hopper.weights_gradient, t["dw"], t["dy"], t["x"], conv)
        return {
            "even": partial(run, hopper.WeightsTile()),
            "stream-k": partial(run, hopper.WeightsTile(), even=False),
            "few filters": partial(run, hopper.FEW_FILTERS),
        }
    if kind == "y":
        tiles, make, names = FORWARD[label], hopper.forward, ("y", "x", "w")
    else:
        tiles, make, names = BACKWARD[label], hopper.data_gradient, ("dx", "dy", "w")
    arguments = [t[name] for name in names]
    return {name: partial(make, *arguments, conv, tile) for name, tile in tiles.items()}


def halo_ways(t: dict, label: str, conv: Convolution, kind: str) -> dict:
    """The kernels with a halo, by name."""
    make, names = HALO[kind]
    run = partial(make, *(t[name] for name in names), conv)
    if kind == "dw":
        return {"halo": run}
    return {"halo": run, "halo, not in turn": partial(run, in_turn=0)}


KINDS = {"y": "fprop", "dx": "dgrad", "dw": "wgrad"}


def race(report: Report, label: str, conv: Convolution, kind: str, make_ways) -> None:
    """Ours against cuDNN: the best of ours is recorded under the chapter's name."""
    name = f"conv/{KINDS[kind]}/{label}"
    t = tensors(conv, DEVICE)
    precise = torch.float64 if kind == "dw" else torch.float32  # its sums are long
    exact = references(t, conv, (kind,), precise)[kind]
    ways = make_ways(t, label, conv, kind)
    right = {}
    for way, make in ways.items():
        run = proved(report, f"{name} {way}", t, conv, kind, make, exact)
        if run:
            right[way] = run
    right["cudnn"] = cudnn(t, conv, kind)
    timed = compare(right, flops=conv.flops, name=name).timings
    theirs = timed["cudnn"]
    report.put(
        "races", name, {way: round(one.flops_per_second / 1e12, 1) for way, one in timed.items()}
    )
    ours = {way: one for way, one in timed.items() if way not in ("cudnn", "wmma")}
    if not ours:
        return
    best = min(ours.values(), key=lambda one: one.median)
    record_ratio(f"{name}/share_of_cudnn", theirs, best)


def record_ratio(name: str, theirs, best) -> None:
    """Record how many times as fast ours is."""
    value = theirs.median / best.median
    spread = value * (best.spread / best.median + theirs.spread / theirs.median)
    results.append({"name": name, "value": value, "unit": "1", "spread": spread})


def all_ways(t: dict, label: str, conv: Convolution, kind: str) -> dict:
    """Everything that can compute it fast, so that one race finds the best of ours."""
    ways = product_ways(t, label, conv, kind)
    if label == "64x56":
        ways |= halo_ways(t, label, conv, kind)
    return ways


def wmma_ways(t: dict, label: str, conv: Convolution, kind: str) -> dict:
    """The implicit products through wmma."""
    run, names = {
        "y": (implicit.forward, ("y", "x", "w")),
        "dx": (implicit.data_gradient, ("dx", "dy", "w")),
        "dw": (implicit.weights_gradient, ("dw", "dy", "x")),
    }[kind]
    return {"wmma": lambda: partial(run, *(t[name] for name in names), conv)}


PICTURE_SIDE, TAPS_SIDE = 8192, 5


def race_picture(report: Report) -> None:
    """A picture and one filter: the classic rungs, Numba's, and PyTorch's."""
    from numba import cuda

    picture = torch.rand(PICTURE_SIDE, PICTURE_SIDE, device=DEVICE)
    taps = torch.rand(TAPS_SIDE, TAPS_SIDE, device=DEVICE)
    out = torch.full_like(picture, torch.nan)
    views = [cuda.as_cuda_array(tensor) for tensor in (out, picture, taps)]
    by_value = classic.by_value(taps.cpu().numpy())
    ways = {"naive": lambda: classic.naive(out, picture, taps)}
    for name in ("constant", "tiled", "registers"):
        ways[name] = partial(classic.RUNGS[name], out, picture, by_value)
    launch = numba_classic.grid_2d(picture)
    for kernel in (numba_classic.naive_2d, numba_classic.tiled_2d):
        ways[f"{kernel.py_func.__name__}, numba"] = partial(kernel[launch], *views)
    padding = TAPS_SIDE // 2
    exact = F.conv2d(picture[None, None].double(), taps[None, None].double(), padding=padding)
    right = {}
    for name, run in ways.items():

        def work(name=name, run=run):
            out.fill_(torch.nan)
            run()
            share = ((out - exact[0, 0]).abs().max() / 1e-5).item()
            assert share < 1, f"error {share * 1e-5}"
            report.put("checks", f"picture {name}", share)
            right[name] = run

        report.attempt(f"picture {name}", work)
    right["torch"] = lambda: F.conv2d(picture[None, None], taps[None, None], padding=padding)
    timed = compare(right, bytes=2 * picture.nbytes, name="conv/picture/5x5").timings
    found = {way: [round(one.median, 4), round(one.share_of_copy, 3)] for way, one in timed.items()}
    report.put("races", "conv/picture/5x5", found)


def race_winograd(report: Report) -> None:
    """Winograd in float32 against PyTorch's convolution, TF32 off."""
    conv = RACED["256x28"]
    t = tensors(conv, DEVICE, torch.float32)
    exact = references(t, conv, ("y",), torch.float64)["y"]
    u = winograd.carried_filters(t["w"])
    run = partial(winograd.winograd, t["y"], t["x"], u)
    run()
    error = (t["y"] - exact).abs().max().item() / terms(conv, "y") ** 0.5
    direct = F.conv2d(nchw(t["x"]), nchw(t["w"]), **conv.options)
    theirs = (nhwc(direct) - exact).abs().max().item() / terms(conv, "y") ** 0.5
    rivals = {"winograd": run, "cudnn": cudnn(t, conv, "y")}
    timed = compare(rivals, flops=conv.flops, name="conv/winograd/256x28").timings
    rates = {way: round(one.flops_per_second / 1e12, 1) for way, one in timed.items()}
    report.put("races", "winograd fp32 256x28", rates | {"error": error, "cudnn error": theirs})


def race_depthwise(report: Report, side: int) -> None:
    """Our depthwise kernel against PyTorch's best mode: both layouts, with and without cuDNN."""
    n, h, w, c = DEPTHWISE_PICTURES
    name = f"conv/depthwise/{side}x{side}"
    x = torch.randn(n, h, w, c, device=DEVICE).bfloat16()
    weights = torch.randn(side, side, c, device=DEVICE).bfloat16()
    y = torch.full_like(x, torch.nan)
    filters = weights.permute(2, 0, 1)[:, None].contiguous()
    last, first = nchw(x), nchw(x).contiguous()
    options = {"padding": side // 2, "groups": c}
    exact = nhwc(F.conv2d(first[:2].float(), filters.float(), **options))
    runs = {}
    ways = {
        f"walk {wide} wide, {height} high": partial(
            depthwise.depthwise, y, x, weights, wide=wide, height=height
        )
        for wide, height in WALKS[side]
    }
    for blocks, stages, wide in RINGS[side]:
        how = {"blocks": blocks, "stages": stages, "wide": wide}
        make = partial(hopper.depthwise, y, x, weights, **how)
        ways[f"ring {blocks} blocks, {stages} stages, {wide} wide"] = make
    for way, make in ways.items():

        def right(make=make, way=way):
            y.fill_(torch.nan)
            run = make()
            run()
            assert not y.isnan().any()
            report.put("checks", f"{name} {way}", verify(y[:2], exact, side**2))
            runs[way] = run

        report.attempt(f"{name} {way}", right)
    filters_last = filters.contiguous(memory_format=torch.channels_last)
    rivals = {
        "torch, nchw": lambda: F.conv2d(first, filters, **options),
        "torch, nhwc": lambda: F.conv2d(last, filters_last, **options),
        "torch, nchw, no cudnn": without_cudnn(lambda: F.conv2d(first, filters, **options)),
        "torch, nhwc, no cudnn": without_cudnn(lambda: F.conv2d(last, filters_last, **options)),
    }
    timed = compare(runs | rivals, bytes=2 * x.nbytes, name=name).timings
    report.put(
        "races",
        name,
        {way: [round(one.median, 4), round(one.share_of_copy, 3)] for way, one in timed.items()},
    )
    best = min((timed[way] for way in runs), key=lambda one: one.median)
    theirs = min((timed[way] for way in rivals), key=lambda one: one.median)
    record_ratio(f"conv/direct/depthwise_{side}x{side}/speedup_over_torch", theirs, best)
    if side == 3:
        record_ratio("conv/direct/depthwise/speedup_over_torch", theirs, best)


def without_cudnn(run):
    def off():
        torch.backends.cudnn.enabled = False
        run()
        torch.backends.cudnn.enabled = True

    return off


def build(part: str) -> None:
    """Compile what will be needed, side by side."""
    tiles = {tile for ways in (*FORWARD.values(), *BACKWARD.values()) for tile in ways.values()}
    with ThreadPoolExecutor(12) as pool:
        if part == "product":
            for tile in tiles:
                pool.submit(hopper._implicit, tile, False)
                pool.submit(hopper._implicit, tile, True)
        if part == "depthwise":
            for side, ways in WALKS.items():
                for wide, _ in ways:
                    pool.submit(depthwise.module, side, wide)


def races(report: Report, labels, kinds, make_ways) -> None:
    for label in labels:
        for kind in kinds:
            if report.left() < 6:
                report.put("clock", f"not done: {label} {kind}", 0)
                continue
            work = partial(race, report, label, RACED[label], kind, make_ways)
            report.attempt(f"race {label} {kind}", work)


def product(report: Report) -> None:
    report.attempt("small", lambda: small_products(report))
    races(report, RACED, ("y", "dx"), all_ways)


def weights(report: Report) -> None:
    report.attempt("small", lambda: small_weights(report))
    races(report, RACED, ("dw",), all_ways)


def halo(report: Report) -> None:
    report.attempt("small", lambda: small_halo(report))


def both_depthwise(report: Report) -> None:
    report.attempt("small", lambda: small_depthwise(report))
    for side in WALKS:
        if report.left() > 4:
            report.attempt(f"depthwise {side}", lambda side=side: race_depthwise(report, side))


def first(report: Report) -> None:
    """What the chapter begins with."""
    report.attempt("picture", lambda: race_picture(report))
    report.attempt("winograd", lambda: race_winograd(report))
    races(report, ["256x28", "512x14"], KINDS, wmma_ways)


PARTS = {
    "first": first,
    "product": product,
    "weights": weights,
    "halo": halo,
    "depthwise": both_depthwise,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=float, default=40, help="seconds")
    parser.add_argument("--part", choices=PARTS, required=True)
    parser.add_argument("--race-seconds", type=float, default=0.4)
    options = parser.parse_args()
    report = Report(options.out, options.budget)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 0
    torch.backends.cudnn.allow_tf32 = False
    timing.BUDGET = options.race_seconds
    start = time.monotonic()
    report.attempt("build", lambda: build(options.part))
    report.put("clock", "built", round(time.monotonic() - start, 1))
    PARTS[options.part](report)
    report.put("clock", "all", round(time.monotonic() - start, 1))
    print(
        options.part,
        "right:",
        len(report.entries["checks"]),
        "failed:",
        list(report.entries["errors"]),
    )
    for name, entry in report.entries["races"].items():
        print(name, entry)
    print(report.entries["clock"])


if __name__ == "__main__":
    main()
