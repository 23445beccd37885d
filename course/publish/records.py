"""The table of records in README.md and on the website's first page: the course's kernels beside
the libraries', from recorded results.

A row sums up all recorded shapes of one operation, the weakest named. Where several of the course's
kernels were raced at a shape, the best of them counts, as the best mode of the rival does.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from utils import results
from utils.results.likeness import RECORDED_ON


def square(shape):
    """The shape of a product of square matrices."""
    *scales, size = shape.split("/")
    how = {"fp8": ["one scale"], "fp8_blocks": ["scales by block"]}
    return ", ".join([f"{int(size):,} × {int(size):,}", *(how[scales[0]] if scales else [])])


def product(shape):
    """The shape of products of any matrices, and their type."""
    sides, kind = shape.split(" ")
    batch, m, n, k = map(int, sides.split("x"))
    many = [f"{batch:,} at once"] if batch > 1 else []
    return ", ".join([f"{m:,} × {k:,} by {k:,} × {n:,}", *many, kind])


def image(shape):
    """The shape of a convolution."""
    *gradient, size = shape.split("/")
    channels, side = size.removesuffix("_1x1").split("x")
    of = {"wgrad": "of the weights", "dgrad": "of the input"}
    filters = ["filters of 1 × 1"] if size.endswith("_1x1") else []
    whose = [of[each] for each in gradient]
    return ", ".join([*whose, f"{channels} channels of {side} × {side}", *filters])


def row(shape):
    """The shape of what works row by row."""
    kernels = {"layernorm": "layer norm", "rmsnorm": "RMS norm"}
    words = []
    for part in re.split("[/ ]", shape):
        kernel, _, backward = part.partition("_")
        rows, _, columns = part.rpartition("x")
        if kernel in kernels:
            words.append(f"{kernels[kernel]} {backward}".strip())
        elif columns.isdigit():
            many = f"{int(rows):,} row{'s' * (rows != '1')}" if rows else "rows"
            words.append(f"{many} of {int(columns):,}")
        else:
            words.append(part)
    return ", ".join(words)


def tokens(shape):
    """The shape of an attention."""
    kind, length = shape.split("/")
    words = [f"{int(length):,} tokens"]
    for pattern, said in ATTENTION.items():
        if found := re.search(pattern, kind):
            words.append(said.format(*found.groups()))
    return ", ".join(words)


#: Parts of an attention's name, in words
ATTENTION = {
    "causal": "causal",
    r"(?:ward|causal)_(\d+)$": "heads of {}",
    r"batch_(\d+)": "batch {}",
    "layers": "several layers",
}


@dataclass(frozen=True)
class Record:
    """One row. title: the operation. rival: beside what. chapter: where it is taught. names: a
    pattern of results that are ratios, ours over the rival's speed; its group is the shape.
    told: a shape in words.
    """

    title: str
    rival: str
    chapter: str
    names: str
    told: Callable[[str], str] = "{} numbers".format


@dataclass(frozen=True)
class Grid(Record):
    """A row of shapes of all kinds, of which the means and the worst are recorded, by type.

    names: a pattern of what these results' names begin with. sides: what a shape consists of.
    """

    sides: tuple[str, ...] = ("rows", "columns")


BEST_OF_TORCH = "the better of PyTorch and `torch.compile`"
RECORDS = (
    Record(
        "Sum of 2^25 to 2^30 numbers", "CUB", "10_reductions", r"reduce/sum/(.+)/speedup_over_cub"
    ),
    Record("Scan", "CUB", "10_reductions", r"scan/(.+)/speedup_over_cub"),
    Record("Sort", "CUB", "10_reductions", r"sort/(.+)/speedup_over_cub"),
    Record(
        "Matrix product, fp32",
        "cuBLAS",
        "11_matmul",
        r"matmul/fp32/(\d+)/\w+/share_of_cublas",
        square,
    ),
    Record(
        "Matrix product, bf16",
        "cuBLAS",
        "12_tensor_cores",
        r"matmul/bf16/(\d+)/\w+/share_of_cublas",
        square,
    ),
    Grid(
        "Matrix product, shapes of all kinds, fp32 to fp8",
        "cuBLAS",
        "12_tensor_cores",
        r"matmul/grid/.+",
        product,
        ("batch", "m", "n", "k"),
    ),
    Record(
        "Convolution, bf16, forward",
        "cuDNN",
        "13_convolution",
        r"conv/fprop/(\w+)/share_of_cudnn",
        image,
    ),
    Record(
        "Convolution, bf16, both gradients",
        "cuDNN",
        "13_convolution",
        r"conv/([dw]grad/\w+)/share_of_cudnn",
        image,
    ),
    Record(
        "Fourier transform",
        "cuFFT",
        "14_fourier",
        r"fft/(2\^\d+)/share_of_cufft",
        "{} points".format,
    ),
    Record(
        "Softmax",
        BEST_OF_TORCH,
        "16_fusion",
        r"softmax/(\d+(?:/bfloat16)?)/speedup_over_best",
        row,
    ),
    Record(
        "Layer norm, RMS norm, forward and backward",
        BEST_OF_TORCH,
        "16_fusion",
        r"((?:layer|rms)norm(?:_backward)?/\d+(?:/bfloat16)?)/speedup_over_best",
        row,
    ),
    Record(
        "Cross-entropy with its gradient",
        BEST_OF_TORCH,
        "16_fusion",
        r"cross_entropy/(\d+(?:/bfloat16)?)/speedup_over_best",
        row,
    ),
    Grid("Softmax, rows of all kinds", BEST_OF_TORCH, "16_fusion", r"softmax/grid/.+", row),
    Grid(
        "Layer norm, RMS norm, forward and backward, rows of all kinds",
        BEST_OF_TORCH,
        "16_fusion",
        r"(?:layer|rms)norm(?:_backward)?/grid/.+",
        row,
    ),
    Grid(
        "Cross-entropy, and with its gradient, rows of all kinds",
        BEST_OF_TORCH,
        "16_fusion",
        r"cross_entropy(?:_forward)?/grid/.+",
        row,
    ),
    Record(
        "Matrix product, fp8",
        "PyTorch's `_scaled_mm`",
        "17_low_precision",
        r"matmul/(fp8\w*/\d+)/share_of_scaled_mm",
        square,
    ),
    Record(
        "Training step of a CNN",
        "PyTorch's best mode",
        "20_beating_pytorch",
        r"mnist/step/(\d+)/speedup_over_pytorch_best",
        "batch {}".format,
    ),
    Record(
        "Attention, forward",
        "cuDNN",
        "22_attention",
        r"attention/(forward\w*/\d+)/share_of_cudnn",
        tokens,
    ),
    Record(
        "Attention, backward",
        "cuDNN",
        "22_attention",
        r"attention/(backward\w*/\d+)/share_of_cudnn",
        tokens,
    ),
    Record(
        "Attention, one new token",
        "the best of PyTorch's backends",
        "22_attention",
        r"attention/(decode\w*/\d+)/speedup_over_best",
        tokens,
    ),
)


def ratios(record, gpu=RECORDED_ON):
    """{shape: how many times the rival's speed} of a record, from the results of one GPU."""
    best = {}
    for entry in results.everything():
        match = re.fullmatch(record.names, entry["name"])
        if match and entry["gpu"] == gpu:
            shape = match[1]
            best[shape] = max(entry["value"], best.get(shape, 0.0))
    return best


@dataclass(frozen=True)
class Summary:
    """What a record's shapes come to: the weakest of them, its ratio, geometric mean, best."""

    shapes: int
    weakest: str
    least: float
    mean: float
    best: float | None  # None where only the mean and the worst were recorded

    def best_told(self, form):
        """The best in a form such as "<b>{:.2f}</b>", or a dash."""
        return form.format(self.best) if self.best else "–"


def summary(record):
    """The Summary of a record."""
    return of_grid(record) if isinstance(record, Grid) else of_shapes(record)


def strongest(many=5):
    """The records with the greatest means, the greatest first: one a chapter."""
    by_chapter = {}
    for record in sorted(RECORDS, key=lambda each: summary(each).mean):
        by_chapter[record.chapter] = record
    return sorted(by_chapter.values(), key=lambda each: summary(each).mean)[: -many - 1 : -1]


def of_grid(record, gpu=RECORDED_ON):
    """The Summary of a grid: all types, shapes that were tuned with and others, each shape once."""
    found = {each["name"]: each["value"] for each in results.everything() if each["gpu"] == gpu}
    pattern = re.compile(f"({record.names})/geomean_over_best")
    starts = [match[1] for match in map(pattern.fullmatch, found) if match]
    worst = min(starts, key=lambda start: found[f"{start}/worst_over_best"])
    sides = [f"{found[f'{worst}/worst_over_best/{side}']:.0f}" for side in record.sides]
    counts = [found[f"{start}/shapes"] for start in starts]
    logs = [math.log(found[f"{start}/geomean_over_best"]) for start in starts]
    mean = sum(n * each for n, each in zip(counts, logs, strict=True)) / sum(counts)
    best = [found.get(f"{start}/greatest_over_best") for start in starts]
    return Summary(
        shapes=round(sum(counts)),
        weakest=f"{'x'.join(sides)} {worst.split('/')[2]}",
        least=found[f"{worst}/worst_over_best"],
        mean=math.exp(mean),
        best=max(best) if all(best) else None,
    )


def of_shapes(record):
    """The Summary of a record whose shapes are all among the results."""
    by_shape = ratios(record)
    weakest = min(by_shape, key=by_shape.get)
    values = by_shape.values()
    mean = math.exp(sum(map(math.log, values)) / len(values))
    return Summary(len(by_shape), weakest, by_shape[weakest], mean, max(values))


def rows():
    """The rows of README.md's table."""
    for record in RECORDS:
        told = summary(record)
        yield (
            f"| [{record.title}](chapters/{record.chapter}.ipynb) | {record.rival} "
            f"| {told.shapes} | {told.least:.2f} ({record.told(told.weakest)}) | {told.mean:.2f} "
            f"| {told.best_told('**{:.2f}**')} |"
        )
