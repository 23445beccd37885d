"""Check the kernels of few bits, then race them on this GPU.

    python -m course.kernels.low_precision.bench --out results.json --budget 60

As course.kernels.fusion.bench: what is wrong is not timed, every result is written at once.
"""

import functools

import torch

from course.kernels.fusion.bench import main
from course.kernels.fusion.racing import (
    captured,
    fastest,
    race,
    record,
    record_share,
    record_speedup,
    speedup,
    usable,
)
from course.kernels.low_precision import fp8_matmul, int4, rightness, sparse
from course.kernels.row_kernels.report import Report
from utils import has_gpu

# ---- int4: matrix times vector
#
# Layers of a model follow one another: many matrices in turn, each product the next one's vector,
# all of them together far larger than the L2 cache, as one CUDA graph. (One matrix alone after a
# flush of the cache would be charged for what the flush has left there to be written back.)

GEMV_SIDES = (8192, 16384, 4096)
CHAIN_BYTES = 2.2e9  # of packed weights
GEMV_SHAPES = [
    int4.Shape(*shape)
    for shape in (
        (1, 8, 3, 4),
        (1, 8, 2, 4),
        (1, 8, 4, 3),
        (1, 4, 3, 8),
        (1, 16, 3, 2),
    )
]


class Layers:
    """Square matrices of a side, in 4 bits and in bfloat16, and vectors to send through them."""

    def __init__(self, n: int):
        _, scales = int4.random_weights(n, n)
        # as many below zero as above, and scales with which vectors keep their size
        codes = torch.randint(1, 16, (n, n), dtype=torch.uint8, device="cuda")
        scales = (scales.float() / 2.5).bfloat16()
        self.first = int4.pack(codes, scales)
        self.count = max(4, round(CHAIN_BYTES / self.first.bytes))
        self.packed = [self.first, *(self._copy() for _ in range(self.count - 1))]
        weights = int4.dequantize(codes, scales).bfloat16()
        self.weights = [weights, *(weights.clone() for _ in range(self.count - 1))]
        self.codes, self.scales = codes, scales
        self.vectors = torch.randn(8, n, device="cuda").bfloat16()
        self.buffers = torch.empty(2, 8, n, device="cuda", dtype=torch.bfloat16)

    def _copy(self) -> int4.Packed:
        first = self.first
        return int4.Packed(first.codes.clone(), first.scales.clone(), first.rows, first.columns)

    def ours(self, vectors: int, shape: int4.Shape, overlapped: bool) -> torch.Tensor:
        """Through all layers; the result stays in one of the buffers."""
        x = self.vectors[:vectors]
        for layer, packed in enumerate(self.packed):
            y = self.buffers[layer % 2, :vectors]
            int4.multiply(packed, x, y, shape, overlapped)
            x = y
        return x

    def bf16(self, product, x: torch.Tensor) -> torch.Tensor:
        """The same with torch's bfloat16 products."""
        for weights in self.weights:
            x = product(x, weights)
        return x

    def check(self, shape: int4.Shape) -> bool:
        """Whether overlapped kernels give the very bits of kernels that wait for one another."""
        rightness.check_int4(shape, ((32, self.first.columns, 1), (96, 640, 3)))
        in_turn = self.ours(1, shape, False).clone()
        assert in_turn.isfinite().all(), "vectors do not keep their size"
        return torch.equal(self.ours(1, shape, True), in_turn)


def race_gemv(report: Report) -> None:
    """4-bit weights against bfloat16 ones, for one vector and for eight."""
    for n in GEMV_SIDES:
        race_gemv_of(report, n)
        torch.cuda.empty_cache()


def race_gemv_of(report: Report, n: int) -> None:
    layers = Layers(n)
    moved = layers.count * (layers.first.bytes + 4 * n)
    graphs = {}
    overlap = {}

    def check(shape):
        overlap[shape] = layers.check(shape)
        graphs[shape] = captured(lambda: layers.ours(1, shape, overlap[shape]))

    best = fastest(
        report,
        f"gemv/{n}",
        {str(shape): shape for shape in GEMV_SHAPES},
        check,
        lambda shape: graphs[shape](),
        bytes=moved,
    )
    report.put("clock", f"gemv/{n} best", f"{best}, overlapped: {overlap[best]}")
    one = layers.vectors[:1]
    runs = {
        "ours": graphs[best],
        "ours, in turn": captured(lambda: layers.ours(1, best, False)),
        "ours, 8 vectors": captured(lambda: layers.ours(8, best, overlap[best])),
    }
    linear = torch.nn.functional.linear
    rivals = {
        "torch bf16 mv": lambda: layers.bf16(lambda x, w: torch.mv(w, x), one[0]),
        "torch bf16 linear": lambda: layers.bf16(linear, one),
        "torch bf16 linear, 8 vectors": lambda: layers.bf16(linear, layers.vectors),
    }
    try:
        rivals["torch int4"] = tinygemm(layers)
    except Exception as error:
        report.failed(f"gemv/{n} torch int4", error)
    for name, rival in usable(report, f"gemv/{n}", rivals).items():
        runs[name] = captured(rival)
    timings = race(report, f"gemv/int4/{n}", runs, bytes=moved)
    record(f"gemv/int4/{n}/layers", layers.count)
    record_share(f"gemv/int4/{n}/share_of_copy", timings["ours"])
    both = ["torch bf16 mv", "torch bf16 linear"]
    record_speedup(f"gemv/int4/{n}/speedup_over_bf16", timings, both)
    others = ["torch bf16 linear, 8 vectors"]
    record_speedup(f"gemv/int4/{n}/8_vectors/speedup_over_bf16", timings, others, "ours, 8 vectors")
    record_speedup(f"gemv/int4/{n}/speedup_over_torch_int4", timings, ["torch int4"])


def tinygemm(layers: Layers):
    """PyTorch's own product with 4-bit weights, as torchao uses it, through all layers."""
    pairs = (layers.codes[:, ::2] << 4 | layers.codes[:, 1::2]).contiguous()
    packed = torch.ops.aten._convert_weight_to_int4pack(pairs, 8)
    packed = [packed, *(packed.clone() for _ in range(layers.count - 1))]
    scales = layers.scales.T.contiguous()
    both = torch.stack([scales, torch.zeros_like(scales)], -1).contiguous()
    multiply = torch.ops.aten._weight_int4pack_mm
    first = layers.vectors[:1]
    exact = int4.multiply(layers.first, first).double()
    rightness.near("torch int4", multiply(first, packed[0], int4.GROUP, both), exact, 0.1)

    def run():
        x = first
        for weights in packed:
            x = multiply(x, weights, int4.GROUP, both)
        return x

    return run


# ---- fp8: matrix times matrix

FP8_SIDES = (8192, 4096)
ROW_SHAPES = [
    fp8_matmul.Shape(False, *shape)
    for shape in (
        (256, 4, 2, 8),
        (128, 6, 2, 8, True),
        (128, 6, 2, 16, True),
        (128, 6, 1, 8, True),
    )
]
BLOCK_SHAPES = [fp8_matmul.Shape(True, 128, 6, 2, 8), fp8_matmul.Shape(True, 128, 6, 1, 16)]


def race_fp8(report: Report) -> None:
    """Products of 8-bit floats with row scales, and with block scales."""
    for n in FP8_SIDES:
        race_fp8_of(report, n)
        race_fp8_blocks_of(report, n)


def fp8_fastest(report: Report, name: str, shapes, given) -> fp8_matmul.Shape:
    return fastest(
        report,
        name,
        {str(shape): shape for shape in shapes},
        rightness.check_fp8,
        lambda shape: fp8_matmul.multiply(*given, shape),
        flops=2 * len(given[0]) ** 3,
    )


def race_fp8_of(report: Report, n: int) -> None:
    given = rightness.fp8_operands(n, n, n)
    best = fp8_fastest(report, f"fp8/{n}", ROW_SHAPES, given)
    report.put("clock", f"fp8/{n} best", str(best))
    check_sample(report, f"fp8/{n}", given, best)
    runs = {"ours": lambda: fp8_matmul.multiply(*given, best)}
    runs |= usable(report, f"fp8/{n}", scaled_mm(*given[1:]))
    wide, narrow = (torch.randn(n, n, device="cuda").bfloat16() for _ in range(2))
    runs["bf16"] = lambda: torch.mm(wide, narrow)
    timings = race(report, f"matmul/fp8/{n}", runs, flops=2 * n**3)
    theirs = [label for label in timings if label.startswith("scaled_mm")]
    if theirs:
        share, spread = speedup(timings, theirs)
        record(f"matmul/fp8/{n}/share_of_scaled_mm", share, "1", spread)
    record_speedup(f"matmul/fp8/{n}/speedup_over_bf16", timings, ["bf16"])


def check_sample(report: Report, name: str, given, shape: fp8_matmul.Shape) -> None:
    """A whole product's first and last rows against float64."""
    c, a, b, scales_a, scales_b = given
    fp8_matmul.multiply(*given, shape)
    rows = torch.cat([torch.arange(128), torch.arange(len(a) - 128, len(a))]).cuda()
    of_rows = scales_a[:, rows] if shape.blocks else scales_a[rows]
    exact = fp8_matmul.exact(a[rows], b, of_rows, scales_b, shape.blocks)
    typical = exact.square().mean(1, keepdim=True).sqrt()
    error = rightness.near(name, c[rows].double() / typical, exact / typical, 0.1)
    report.put("checks", name, error)
    record(f"matmul/{name}/error", error)


def scaled_mm(a, b, scales_a, scales_b) -> dict:
    """torch._scaled_mm in its modes, on the same numbers."""
    one = torch.ones((), device="cuda")
    rows = scales_a[:, None].contiguous(), scales_b[None].contiguous()
    modes = {
        "scaled_mm, fast sums": (one, one, True),
        "scaled_mm": (one, one, False),
        "scaled_mm rows, fast sums": (*rows, True),
        "scaled_mm rows": (*rows, False),
    }

    def run(first, second, fast):
        options = {"out_dtype": torch.bfloat16, "use_fast_accum": fast}
        torch._scaled_mm(a, b.T, first, second, **options)

    return {name: functools.partial(run, *mode) for name, mode in modes.items()}


def race_fp8_blocks_of(report: Report, n: int) -> None:
    given = rightness.fp8_operands(n, n, n, blocks=True)
    best = fp8_fastest(report, f"fp8_blocks/{n}", BLOCK_SHAPES, given)
    report.put("clock", f"fp8_blocks/{n} best", str(best))
    check_sample(report, f"fp8_blocks/{n}", given, best)
    _, a, b, scales_a, scales_b = given

    def theirs():
        options = {"out_dtype": torch.bfloat16, "use_fast_accum": False}
        torch._scaled_mm(a, b.T, scales_a.T, scales_b.T, **options)

    runs = {"ours": lambda: fp8_matmul.multiply(*given, best)}
    runs |= usable(report, f"fp8_blocks/{n}", {"scaled_mm": theirs})
    timings = race(report, f"matmul/fp8_blocks/{n}", runs, flops=2 * n**3)
    if "scaled_mm" in timings:
        share, spread = speedup(timings, ["scaled_mm"])
        record(f"matmul/fp8_blocks/{n}/share_of_scaled_mm", share, "1", spread)


# ---- 2:4 sparsity


def check_sparse() -> float:
    """mma.sp against float64, on a pruned tile."""
    weights = sparse.prune(torch.randn(16, 32, device="cuda").bfloat16())
    b = torch.randn(8, 32, device="cuda").bfloat16()
    d = sparse.multiply_tile(*sparse.compress(weights), b)
    return rightness.near("mma.sp", d, weights.double() @ b.double().T, 1e-5)


def race_sparse(report: Report) -> None:
    """The instruction itself, then PyTorch's library for it, against dense products."""
    report.put("checks", "mma.sp", check_sparse())
    timings = {}
    for name in ("mma.sp", "mma"):
        run, operations = sparse.rate_run(name == "mma.sp")
        timings |= race(report, f"sparse/{name}", {"ours": run}, keep=False, flops=operations)
        record(f"sparse/{name}/rate", timings["ours"].flops_per_second, "FLOP/s")
    n = 8192
    weights = sparse.prune(torch.randn(n, n, device="cuda").bfloat16())
    other = torch.randn(n, n, device="cuda").bfloat16()
    half = torch.sparse.to_sparse_semi_structured(weights)
    runs = {"sparse": lambda: torch.mm(half, other), "dense": lambda: torch.mm(weights, other)}
    timings = race(report, f"sparse/torch/{n}", runs, "sparse", flops=2 * n**3)
    record_speedup(f"sparse/torch/{n}/speedup_over_dense", timings, ["dense"], "sparse")


# ---- int8


def race_int8(report: Report) -> None:
    """PyTorch's product of 8-bit integers, with quantization of the activations before it."""
    n = 8192
    x = torch.randn(n, n, device="cuda").bfloat16()
    weights = torch.randn(n, n, device="cuda").bfloat16()
    scales = weights.abs().amax(1).float() / 127
    codes = (weights / scales[:, None]).round().to(torch.int8)

    def dynamic(x):
        of_rows = x.abs().amax(1, keepdim=True).float() / 127
        rounded = (x / of_rows).round().to(torch.int8)
        return (torch._int_mm(rounded, codes.T) * of_rows * scales).bfloat16()

    torch._dynamo.reset()
    compiled = torch.compile(dynamic, dynamic=False)
    exact = x[:256].double() @ weights.double().T
    error = (compiled(x)[:256].double() - exact).square().mean().sqrt()
    record(f"matmul/int8/{n}/error", float(error / exact.square().mean().sqrt()))
    whole = codes.T
    ready = codes.clone()
    runs = {
        "dynamic": lambda: compiled(x),
        "product only": lambda: torch._int_mm(ready, whole),
        "bf16": lambda: torch.mm(x, weights.T),
    }
    timings = race(report, f"matmul/int8/{n}", runs, "dynamic", flops=2 * n**3)
    record_speedup(f"matmul/int8/{n}/speedup_over_bf16", timings, ["bf16"], "dynamic")


# ---- all of it

PARTS = {"gemv": race_gemv, "fp8": race_fp8, "sparse": race_sparse, "int8": race_int8}
HOPPER = (9, 0)


def check_all(report: Report) -> None:
    """Every kernel in small sizes."""
    checks = {"int4": rightness.check_int4}
    if has_gpu() and torch.cuda.get_device_capability() == HOPPER:
        checks["fp8"] = rightness.check_fp8
        checks["fp8 blocks"] = lambda: rightness.check_fp8(fp8_matmul.BLOCK_SCALES)
    for name, check in checks.items():
        try:
            report.put("checks", name, check())
        except Exception as error:
            report.failed(name, error)


if __name__ == "__main__":
    main(PARTS, check_all)
