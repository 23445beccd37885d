"""Check the kernels of few bits, then race them on this GPU.

    python -m course.kernels.low_precision.bench --out results.json --budget 60

As course.kernels.fusion.bench: what is wrong is not timed, every result is written at once.
"""

import dataclasses
from functools import partial
from importlib.util import find_spec

import torch

from course.kernels.bench.command import main
from course.kernels.bench.races import (
    fastest,
    race,
    record_share,
    record_speedup,
    usable,
)
from course.kernels.bench.report import Report
from course.kernels.low_precision import fp8_matmul, int4, rightness, sparse
from course.kernels.mnist_cnn.pytorch_modes import as_graph
from utils import has_gpu

# ---- int4: matrix times vector
#
# Layers of a model follow one another: many matrices in turn, each product the next one's vector,
# all of them together far larger than the L2 cache, as one CUDA graph. (One matrix alone after a
# flush of the cache would be charged for what the flush has left there to be written back.)

GEMV_SIDES = (8192, 16384, 4096)
CHAIN_BYTES = 4.4e9  # of packed weights
GEMV_SHAPES = [
    *(int4.Shape(*shape) for shape in ((2, 8, 3), (2, 8, 2), (1, 16, 4))),
    *(int4.Shape(*shape, room=False) for shape in ((4, 16, 2), (4, 16, 3), (4, 8, 4), (2, 16, 3))),
]
SHAPES_OF_MORE = [
    int4.Shape(*shape, vectors=int4.MOST_VECTORS)
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
        self.codes = torch.randint(1, 16, (n, n), dtype=torch.uint8, device="cuda")
        self.scales = (scales.float() / 2.5).bfloat16()
        self.first = int4.pack(self.codes, self.scales)
        self.count = max(4, round(CHAIN_BYTES / self.first.bytes))
        copies = range(self.count - 1)
        self.packed = [self.first, *(self._copy() for _ in copies)]
        weights = int4.dequantize(self.codes, self.scales).bfloat16()
        self.weights = [weights, *(weights.clone() for _ in copies)]
        self.vectors = bf16_matrix(8, n)
        self.buffers = torch.stack([self.vectors, self.vectors])

    def _copy(self) -> int4.Packed:
        first = self.first
        return dataclasses.replace(
            first,
            codes=first.codes.clone(),
            scales=first.scales.clone(),
        )

    def ours(self, shape: int4.Shape, overlapped: bool) -> torch.Tensor:
        """As many vectors as the shape takes through all layers; the result stays in a buffer."""
        x = self.vectors[: shape.vectors]
        for layer, packed in enumerate(self.packed):
            y = self.buffers[layer % 2, : shape.vectors]
            int4.multiply(packed, x, y, shape, overlapped)
            x = y
        return x

    def graph(self, shape: int4.Shape, overlapped: bool):
        """The same as one CUDA graph."""
        return as_graph(partial(self.ours, shape, overlapped))

    def check(self, shape: int4.Shape) -> bool:
        """Whether overlapped kernels give the very bits of kernels that wait for one another."""
        columns = self.first.columns
        rows = shape.rows
        most = shape.vectors
        rightness.check_int4(shape, ((rows, columns, 1), (3 * rows, 640, most)))
        in_turn = self.ours(shape, False).clone()
        assert in_turn.isfinite().all(), "vectors do not keep their size"
        overlapped = self.ours(shape, True)
        return torch.equal(overlapped, in_turn)


def through(matrices, product, x: torch.Tensor) -> torch.Tensor:
    """x through one product after the other."""
    for matrix in matrices:
        x = product(x, matrix)
    return x


def bf16_matrix(rows: int, columns: int) -> torch.Tensor:
    """Normal random numbers on the GPU."""
    return torch.randn(rows, columns, device="cuda").bfloat16()


def labelled(shapes) -> dict:
    """{as text: shape}."""
    return {str(shape): shape for shape in shapes}


def race_gemv(report: Report) -> None:
    """4-bit weights against bfloat16 ones, for one vector and for eight."""
    for n in GEMV_SIDES:
        race_gemv_of(report, n)
        torch.cuda.empty_cache()


def race_gemv_of(report: Report, n: int) -> None:
    layers = Layers(n)
    moved = layers.count * (layers.first.bytes + 4 * n)
    name = f"gemv/int4/{n}"
    runs = our_gemv(report, layers, n, moved)
    for label, rival in usable(report, f"gemv/{n}", gemv_rivals(report, layers, n)).items():
        runs[label] = as_graph(rival)
    timings = race(report, name, runs, bytes=moved)
    report.record(f"{name}/layers", layers.count)
    record_share(report, f"{name}/share_of_copy", timings["ours"])
    both = ["torch bf16 mv", "torch bf16 linear"]
    record_speedup(report, f"{name}/speedup_over_bf16", timings, both)
    of_few_bits = ["torch int4", "torchao int4"]
    record_speedup(report, f"{name}/speedup_over_torch_int4", timings, of_few_bits)
    record_speedup(
        report,
        f"{name}/8_vectors/speedup_over_bf16",
        timings,
        ["torch bf16 linear, 8 vectors"],
        "ours, 8 vectors",
    )


def our_gemv(report: Report, layers: Layers, n: int, moved: float) -> dict:
    """The fastest shapes' graphs: one vector, one without overlap, eight."""
    shape, overlapped = fastest_gemv(report, layers, f"gemv/{n}", GEMV_SHAPES, moved)
    name = f"gemv/{n}, 8 vectors"
    of_more, overlapped_more = fastest_gemv(report, layers, name, SHAPES_OF_MORE, moved)
    return {
        "ours": layers.graph(shape, overlapped),
        "ours, in turn": layers.graph(shape, False),
        "ours, 8 vectors": layers.graph(of_more, overlapped_more),
    }


def fastest_gemv(report: Report, layers: Layers, name: str, shapes, moved: float):
    """(the fastest shape, whether its kernels may overlap), each with all vectors that it takes."""
    overlap = {}
    graphs = {}

    def check(shape):
        overlap[shape] = layers.check(shape)
        graphs[shape] = layers.graph(shape, overlap[shape])

    def run(shape):
        graphs[shape]()

    best = fastest(report, name, labelled(shapes), check, run, bytes=moved)
    report.put("clock", f"{name} best", f"{best}, overlapped: {overlap[best]}")
    return best, overlap[best]


def gemv_rivals(report: Report, layers: Layers, n: int) -> dict:
    """PyTorch's ways through the same layers."""
    vectors = layers.vectors
    linear = torch.nn.functional.linear

    def product(x, weights):
        return torch.mv(weights, x)

    rivals = {
        "torch bf16 mv": partial(through, layers.weights, product, vectors[0]),
        "torch bf16 linear": partial(through, layers.weights, linear, vectors[:1]),
        "torch bf16 linear, 8 vectors": partial(through, layers.weights, linear, vectors),
    }
    tiny = report.attempt(f"gemv/{n} torch int4", tinygemm, layers)
    if tiny:
        rivals["torch int4"] = tiny
    if find_spec("torchao"):
        torchao = report.attempt(f"gemv/{n} torchao", torchao_int4, layers)
        if torchao:
            rivals["torchao int4"] = torchao
    return rivals


def tinygemm(layers: Layers):
    """PyTorch's own product with 4-bit weights, as torchao uses it, through all layers."""
    high = layers.codes[:, ::2]
    low = layers.codes[:, 1::2]
    pairs = (high << 4 | low).contiguous()
    weights = torch.ops.aten._convert_weight_to_int4pack(pairs, 8)
    packed = [weights, *(weights.clone() for _ in range(layers.count - 1))]
    scales = layers.scales.T.contiguous()
    zeros = torch.zeros_like(scales)
    both = torch.stack([scales, zeros], -1).contiguous()

    def multiply(x, weights):
        return torch.ops.aten._weight_int4pack_mm(x, weights, int4.GROUP, both)

    first = layers.vectors[:1]
    exact = int4.multiply(layers.first, first).double()
    rightness.near("torch int4", multiply(first, weights), exact, 0.1)
    return partial(through, packed, multiply, first)


def torchao_int4(layers: Layers):
    """torchao's tensors of 4-bit weights, packed as it packs them for a GPU."""
    from torchao.quantization import Int4TilePackedTo4dTensor

    weights = layers.weights[0]
    matrix = Int4TilePackedTo4dTensor.from_hp(weights, [1, int4.GROUP])
    matrices = [matrix, *(matrix.clone() for _ in range(layers.count - 1))]
    linear = torch.nn.functional.linear
    first = layers.vectors[:1]
    exact = first.double() @ weights.double().T
    most = 0.6  # of a typical value: it rounds our numbers to 16 levels of its own
    rightness.near("torchao int4", linear(first, matrix), exact, most)
    return partial(through, matrices, linear, first)


# ---- fp8: matrix times matrix

FP8_SIDES = (8192, 4096)
ROW_SHAPES = [
    *(fp8_matmul.Shape(high=high) for high in (8, 16)),
    *(fp8_matmul.Shape(False, 128, 6, 2, high, True) for high in (7, 8)),
    *(fp8_matmul.Shape(False, 128, 6, 2, high, True, True) for high in (7, 8)),
    *(fp8_matmul.Shape(False, 192, 5, 2, high, True) for high in (6, 7, 8)),
]
BLOCK_SHAPES = [
    fp8_matmul.Shape(True, 128, 6, 2, 8),
    fp8_matmul.Shape(True, 128, 6, 1, 16),
]


def race_fp8(report: Report) -> None:
    """Products of 8-bit floats with row scales, and with block scales."""
    for n in FP8_SIDES:
        race_fp8_of(report, n)
        race_fp8_blocks_of(report, n)


def fp8_fastest(report: Report, name: str, shapes, given) -> fp8_matmul.Shape:
    n = len(given[0])
    return fastest(
        report,
        name,
        labelled(shapes),
        rightness.check_fp8,
        partial(fp8_matmul.multiply, *given),
        flops=2 * n**3,
    )


def race_fp8_of(report: Report, n: int) -> None:
    name = f"matmul/fp8/{n}"
    given = rightness.fp8_operands(n, n, n)
    best = fp8_fastest(report, f"fp8/{n}", ROW_SHAPES, given)
    report.put("clock", f"fp8/{n} best", str(best))
    check_sample(report, f"fp8/{n}", given, best)
    runs = {"ours": partial(fp8_matmul.multiply, *given, best)}
    runs |= usable(report, f"fp8/{n}", scaled_mm(*given[1:]))
    runs["bf16"] = partial(torch.mm, bf16_matrix(n, n), bf16_matrix(n, n))
    timings = race(report, name, runs, flops=2 * n**3)
    record_against_scaled_mm(report, name, timings)
    record_speedup(report, f"{name}/speedup_over_bf16", timings, ["bf16"])


def record_against_scaled_mm(report: Report, name: str, timings: dict) -> None:
    """Record our share of the fastest of PyTorch's modes."""
    theirs = [label for label in timings if label.startswith("scaled_mm")]
    record_speedup(report, f"{name}/share_of_scaled_mm", timings, theirs)


def check_sample(report: Report, name: str, given, shape: fp8_matmul.Shape) -> None:
    """A whole product's first and last rows against float64."""
    c, a, b, scales_a, scales_b = given
    fp8_matmul.multiply(*given, shape)
    first = torch.arange(128)
    last = first + len(a) - 128
    rows = torch.cat([first, last]).cuda()
    of_rows = scales_a[:, rows] if shape.blocks else scales_a[rows]
    exact = fp8_matmul.exact(a[rows], b, of_rows, scales_b, shape.blocks)
    typical = rightness.typical_of_rows(exact)
    got = c[rows].double()
    error = rightness.near(name, got / typical, exact / typical, 0.1)
    report.put("checks", name, error)
    report.record(f"matmul/{name}/error", error)


def scaled_mm(a, b, scales_a, scales_b) -> dict:
    """torch._scaled_mm in its modes, on the same numbers."""
    one = torch.ones((), device="cuda")
    rows = (scales_a[:, None].contiguous(), scales_b[None].contiguous())

    def run(first, second, fast):
        torch._scaled_mm(
            a,
            b.T,
            first,
            second,
            out_dtype=torch.bfloat16,
            use_fast_accum=fast,
        )

    return {
        "scaled_mm, fast sums": partial(run, one, one, True),
        "scaled_mm": partial(run, one, one, False),
        "scaled_mm rows, fast sums": partial(run, *rows, True),
        "scaled_mm rows": partial(run, *rows, False),
    }


def race_fp8_blocks_of(report: Report, n: int) -> None:
    name = f"matmul/fp8_blocks/{n}"
    given = rightness.fp8_operands(n, n, n, blocks=True)
    best = fp8_fastest(report, f"fp8_blocks/{n}", BLOCK_SHAPES, given)
    report.put("clock", f"fp8_blocks/{n} best", str(best))
    check_sample(report, f"fp8_blocks/{n}", given, best)
    _, a, b, scales_a, scales_b = given

    def theirs():
        torch._scaled_mm(
            a,
            b.T,
            scales_a.T,
            scales_b.T,
            out_dtype=torch.bfloat16,
            use_fast_accum=False,
        )

    runs = {"ours": partial(fp8_matmul.multiply, *given, best)}
    runs |= usable(report, f"fp8_blocks/{n}", {"scaled_mm": theirs})
    timings = race(report, name, runs, flops=2 * n**3)
    record_against_scaled_mm(report, name, timings)


# ---- 2:4 sparsity


def check_sparse() -> float:
    """mma.sp against float64, on a pruned tile."""
    weights = sparse.prune(bf16_matrix(16, 32))
    b = bf16_matrix(8, 32)
    d = sparse.multiply_tile(*sparse.compress(weights), b)
    exact = weights.double() @ b.double().T
    return rightness.near("mma.sp", d, exact, 1e-5)


def race_sparse(report: Report) -> None:
    """The instruction itself, then PyTorch's library for it, against dense products."""
    report.put("checks", "mma.sp", check_sparse())
    for name in ("mma.sp", "mma"):
        run, operations = sparse.rate_run(name == "mma.sp")
        timings = race(
            report,
            f"sparse/{name}",
            {"ours": run},
            keep=False,
            flops=operations,
        )
        rate = timings["ours"].flops_per_second
        report.record(f"sparse/{name}/rate", rate, "FLOP/s")
    n = 8192
    weights = sparse.prune(bf16_matrix(n, n))
    other = bf16_matrix(n, n)
    half = torch.sparse.to_sparse_semi_structured(weights)
    runs = {
        "sparse": partial(torch.mm, half, other),
        "dense": partial(torch.mm, weights, other),
    }
    name = f"sparse/torch/{n}"
    timings = race(report, name, runs, "sparse", flops=2 * n**3)
    record_speedup(report, f"{name}/speedup_over_dense", timings, ["dense"], "sparse")


# ---- int8


def race_int8(report: Report) -> None:
    """PyTorch's product of 8-bit integers, with quantization of the activations before it."""
    n = 8192
    name = f"matmul/int8/{n}"
    x = bf16_matrix(n, n)
    weights = bf16_matrix(n, n)
    scales = weights.abs().amax(1).float() / 127
    codes = (weights / scales[:, None]).round().to(torch.int8)

    def dynamic(x):
        of_rows = x.abs().amax(1, keepdim=True).float() / 127
        rounded = (x / of_rows).round().to(torch.int8)
        sums = torch._int_mm(rounded, codes.T)
        return (sums * of_rows * scales).bfloat16()

    torch._dynamo.reset()
    compiled = torch.compile(dynamic, dynamic=False)
    exact = x[:256].double() @ weights.double().T
    apart = compiled(x)[:256].double() - exact
    report.record(f"{name}/error", float(root_mean_square(apart) / root_mean_square(exact)))
    runs = {
        "dynamic": partial(compiled, x),
        "product only": partial(torch._int_mm, codes.clone(), codes.T),
        "bf16": partial(torch.mm, x, weights.T),
    }
    timings = race(report, name, runs, "dynamic", flops=2 * n**3)
    record_speedup(report, f"{name}/speedup_over_bf16", timings, ["bf16"], "dynamic")


def root_mean_square(x: torch.Tensor) -> torch.Tensor:
    """The square root of the squares' mean."""
    return x.square().mean().sqrt()


# ---- all of it

PARTS = {
    "gemv": race_gemv,
    "fp8": race_fp8,
    "sparse": race_sparse,
    "int8": race_int8,
}
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
    main(__doc__, PARTS, check_all)
