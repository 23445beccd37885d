"""Checks the kernels of this folder, then times them beside cuFFT, all in one run.

    python -m course.kernels.fft.bench --out fft.json [--parts rows long pictures] [--budget 60]

Every rival gets the same input, in turn, with the L2 cache overwritten before each repeat. Each
result is written as soon as it is there, and handed to the recording command where that runs this
one. An error is written down and does not end the run. Without a GPU nothing is timed: the kernels
are checked in small sizes.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch

from course.kernels.bench.command import command_line, run_parts, table
from course.kernels.bench.races import fastest, race, record_speedup
from course.kernels.bench.report import Report
from course.kernels.fft import by_hand, cufft, other_plans, plans, rightness
from course.kernels.fft.kernels import DEVICE
from course.kernels.fft.plans import Deal, TwoPass
from course.kernels.fft.rightness import FORWARD, random_complex
from utils import has_gpu, timing

POINTS = 1 << 27  # of what is timed: 1 GiB in, 1 GiB out
SWEEP_SECONDS = 0.05  # for a rival of a sweep
RACE_SECONDS = 0.5
SHARED_BYTES = 227 << 10  # of a multiprocessor, for blocks
BLOCK_BYTES = 1 << 10  # that the system takes of them for each block
REGISTERS = 1 << 16


def power(n: int) -> str:
    """2^10 for 1024."""
    return f"2^{n.bit_length() - 1}"


def checked(report: Report, name: str, check, *arguments) -> None:
    """Records the error that a check returns."""
    error = report.attempt(f"check {name}", check, *arguments)
    if error is not None:
        report.record(name, error, "1")


def right_ones(report: Report, deals: list, check, work) -> dict:
    """{deal: work(deal)} of those that check(deal) does not refuse."""
    found = {}
    for deal in deals:
        if report.attempt(f"check {deal}", check, deal) is not None:
            found[deal] = work(deal)
    return found


def best_of(report: Report, name: str, works: dict, arrays: tuple):
    """The fastest of works, {deal: function of the arrays}, which are right: a sweep."""
    forms = {str(deal): work for deal, work in works.items()}
    timing.BUDGET = SWEEP_SECONDS
    best = fastest(report, name, forms, lambda work: None, lambda work: work(*arrays))
    timing.BUDGET = RACE_SECONDS
    return best


def bound(works: dict, *arrays) -> dict:
    """Each work as a function without arguments."""
    return {label: partial(work, *arrays) for label, work in works.items()}


def compete(
    report: Report,
    name: str,
    works: dict,
    x,
    out,
    axes: int = 1,
) -> None:
    """Races works, {label: function of x and out}, with cuFFT and, if it is as large, a copy.

    Records the shares of the one called "ours" under `name`, of the others under name/label.
    """
    moved = x.nbytes + out.nbytes
    library = cufft.Plan(x, out, axes)
    rivals = {"cuFFT": library}
    if x.shape == out.shape:
        rivals["copy"] = partial(out.copy_, x)
    rivals |= bound(works, x, out)
    timings = race(report, name, rivals, bytes=moved)
    for label in works:
        place = name if label == "ours" else f"{name}/{label}"
        record_speedup(report, f"{place}/share_of_cufft", timings, ["cuFFT"], label)
        record_speedup(report, f"{place}/share_of_copy", timings, ["copy"], label)
    library.close()


# ---- rows -------------------------------------------------------------------------------------

LENGTHS = (1024, 8192, 256, 4096, 512, 2048)
SMALL_LENGTHS = (2, 8, 64, 256, 1024)
#: Points in a thread: registers that it needs
RADICES = {
    8: 40,
    16: 64,
    32: 112,
}
THREADS = (64, 128, 256)


def deals_for(n: int) -> list[Deal]:
    """Ways to deal out a transform of n points that fit a multiprocessor."""
    deals = []
    for radix, registers in RADICES.items():
        each = n // radix
        for threads in sorted({max(each, size) for size in THREADS}):
            together = threads // each
            most = _blocks(n, radix, threads, registers)
            fewer = most * 3 // 4
            if threads <= 1024 and fewer:
                deals.append(Deal(radix, together, most))
                deals.append(Deal(radix, together, fewer))
    return unique(deals)


def unique(items) -> list:
    """Each item once, in the order of their first coming."""
    return list(dict.fromkeys(items))


def _blocks(n: int, radix: int, threads: int, registers: int) -> int:
    """Blocks for which a multiprocessor has shared memory and registers."""
    rows = threads * radix // n
    points_bytes = plans.padded(n, radix) * plans.COMPLEX_BYTES
    by_memory = SHARED_BYTES // (points_bytes * rows + BLOCK_BYTES)
    by_registers = REGISTERS // (threads * registers)
    return min(by_memory, by_registers, plans.MOST_BLOCKS)


def bench_rows(report: Report) -> None:
    lengths = LENGTHS if has_gpu() else SMALL_LENGTHS
    for n in lengths:
        checked(report, f"fft/accuracy/{n}", rightness.rows, n)
    if not has_gpu():
        return
    for n in lengths:
        report.attempt(f"rows of {n}", time_rows, report, n)


def time_rows(report: Report, n: int) -> None:
    x = random_complex(POINTS // n, n)
    out = torch.empty_like(x)
    name = power(n)
    check = partial(rightness.rows, n, ways=FORWARD)
    make = partial(plans.Rows, n, False)
    works = right_ones(report, deals_for(n), check, make)
    best = best_of(report, name, works, (x, out))
    rivals = {
        "ours": best,
        "default": plans.Rows(n),
    }
    compete(report, f"fft/{name}", rivals, x, out)


def cufft_accuracy(report: Report) -> None:
    """How far off cuFFT is, for comparison."""
    for n in LENGTHS:
        x = random_complex(133, n)
        right = torch.fft.fft(x.to(torch.complex128))
        error = rightness.error_of(torch.fft.fft(x), right)
        report.record(f"fft/accuracy/cufft/{n}", error, "1")


# ---- two passes -------------------------------------------------------------------------------

PICTURES = 64
SIDE = 1024
LONG = 1 << 16
LONG_SIDE = 256
#: {(columns or rows together, blocks): lags}
LONG_LAGS = {
    (32, 2): (112, 128, 144, 160, 176, 192),
    (16, 4): (256, 288, 320, 352),
}
PICTURE_LAGS = {
    (16, 1): (80, 96, 112, 128, 144, 160),
    (8, 2): (224, 256, 288),
}
STREAMS = (
    (),
    plans.STREAMED,
    plans.STREAMED[:1],
    plans.STREAMED[1:],
)


def two_pass_deals(radix: int, lags: dict) -> list[TwoPass]:
    """All lags with all ways to load and store."""
    deals = []
    for shape, some in lags.items():
        for lag in some:
            for flags in STREAMS:
                deals.append(TwoPass(radix, *shape, lag, flags))
    return deals


LONG_DEALS = two_pass_deals(16, LONG_LAGS)
PICTURE_DEALS = two_pass_deals(32, PICTURE_LAGS)


def bench_long(report: Report) -> None:
    if not has_gpu():
        small = TwoPass(16, 16, 1, 2)
        checked(report, "fft/accuracy/1024", rightness.long, 1024, small)
        return
    checked(report, f"fft/accuracy/{LONG}", rightness.long, LONG)
    report.attempt("time long", time_long, report)


def time_long(report: Report) -> None:
    x = random_complex(POINTS // LONG, LONG)
    out = torch.empty_like(x)
    between = torch.empty_like(x)
    check = partial(rightness.long, LONG, items=50, ways=FORWARD)
    make = partial(plans.Long, LONG, False)
    works = right_ones(report, LONG_DEALS, check, make)
    in_two = {}
    for deal, work in works.items():
        in_two[deal] = partial(work.two_launches, between=between)
    arrays = (x, out)
    found = {
        "ours": best_of(report, "2^16 in one", works, arrays),
        "two_launches": best_of(report, "2^16 in two", in_two, arrays),
        "default": plans.Long(LONG),
    }
    compete(report, "fft/2^16", found, x, out)


def bench_pictures(report: Report) -> None:
    if not has_gpu():
        small = TwoPass(8, 8, 1, 1)
        checked(report, "fft2/accuracy/32", rightness.pictures, 32, small)
        return
    checked(report, f"fft2/accuracy/{SIDE}", rightness.pictures, SIDE)
    report.attempt("time pictures", time_pictures, report)


def time_pictures(report: Report) -> None:
    x = random_complex(PICTURES, SIDE, SIDE)
    out = torch.empty_like(x)
    check = partial(rightness.pictures, SIDE, count=5, ways=FORWARD)
    make = partial(plans.Pictures, SIDE, False)
    works = right_ones(report, PICTURE_DEALS, check, make)
    in_two = {deal: work.two_launches for deal, work in works.items()}
    arrays = (x, out)
    found = {
        "ours": best_of(report, "pictures in one", works, arrays),
        "two_launches": best_of(report, "pictures in two", in_two, arrays),
        "default": plans.Pictures(SIDE),
    }
    compete(report, "fft2/1024", found, x, out, axes=2)


# ---- real input, any length -------------------------------------------------------------------

REAL_LENGTHS = (1024, 4096)
PRIME = 1009


def real_deals(n: int) -> list[Deal]:
    """Of those for n / 2 points, those for which the last butterfly has its roots."""
    return [deal for deal in deals_for(n // 2) if deal.radix < 32]


def bench_real(report: Report) -> None:
    for n in (4, 64, *REAL_LENGTHS):
        checked(report, f"rfft/accuracy/{n}", rightness.real, n)
    for n in (1, 2, 3, 5, 7, 97, 101, PRIME):
        checked(report, f"fft/accuracy/any/{n}", rightness.any_length, n)
    if has_gpu():
        for n in REAL_LENGTHS:
            report.attempt(f"time real {n}", time_real, report, n)
        report.attempt("time any length", time_any, report)


def time_real(report: Report, n: int) -> None:
    x = torch.randn(2 * POINTS // n, n, device=DEVICE)
    values = n // 2 + 1
    out = torch.empty(
        len(x),
        values,
        dtype=torch.complex64,
        device=DEVICE,
    )
    check = partial(rightness.real, n)
    make = partial(other_plans.Real, n)
    works = right_ones(report, real_deals(n), check, make)
    best = best_of(report, f"real {n}", works, (x, out))
    rivals = {
        "ours": best,
        "default": other_plans.Real(n),
    }
    compete(report, f"rfft/{power(n)}", rivals, x, out)


def time_any(report: Report) -> None:
    x = random_complex(POINTS // 4 // PRIME, PRIME)
    out = torch.empty_like(x)
    ours = other_plans.AnyLength(PRIME)
    compete(report, f"fft/{PRIME}", {"ours": ours}, x, out)


# ---- a picture's filter: through the transform, or directly? ----------------------------------

FILTER_SIZES = (3, 5, 7, 9, 11, 13, 15, 21, 31)
FILTER_TOLERANCE = 1e-5  # against PyTorch's sums in float32
DIRECT_ROWS = (8, 16)


def bench_filter(report: Report) -> None:
    checked(report, "fft/accuracy/filter", rightness.filters)
    if not has_gpu():
        return
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    x = torch.randn(PICTURES, SIDE, SIDE, device=DEVICE)
    for size in FILTER_SIZES:
        report.attempt(f"time filter {size}", time_filter, report, x, size)


def time_filter(report: Report, x: torch.Tensor, size: int) -> None:
    taps = torch.randn(size, size, device=DEVICE)
    right = rightness.directly(x, taps)
    works = {"ours": other_plans.Filter(SIDE, taps)}
    for rows in DIRECT_ROWS:
        works[f"direct_{rows}"] = other_plans.Direct(SIDE, taps, rows)
    for work in works.values():
        rightness.filtered(work, x, taps, right, FILTER_TOLERANCE)
    out = torch.empty_like(x)
    rivals = bound(works, x, out) | torch_filters(x, taps)
    race(report, f"fft/filter/{size}", rivals, bytes=2 * x.nbytes)


def torch_filters(x: torch.Tensor, taps: torch.Tensor) -> dict:
    """PyTorch's ways: a batch of pictures, pictures as channels, through its transform."""
    pictures = len(x)
    weights = taps.expand(pictures, 1, *taps.shape).contiguous()
    conv2d = torch.nn.functional.conv2d
    spectrum = torch.fft.rfft2(taps, (SIDE, SIDE)).conj()

    def through_the_transform():
        return torch.fft.irfft2(torch.fft.rfft2(x) * spectrum)

    return {
        "torch": partial(rightness.directly, x, taps),
        "torch_depthwise": partial(conv2d, x[None], weights, groups=pictures),
        "torch_fft": through_the_transform,
    }


# ---- the ladder, at 256 points ----------------------------------------------------------------

LADDER_POINTS = 1 << 24  # of all rows together
LADDER_LENGTH = by_hand.BLOCK_POINTS
LADDER_THREADS = 128


def bench_ladder(report: Report) -> None:
    report.attempt("check by hand", rightness.by_hand_ones)
    if has_gpu():
        report.attempt("time the ladder", time_ladder, report)


def time_ladder(report: Report) -> None:
    x = random_complex(LADDER_POINTS // LADDER_LENGTH, LADDER_LENGTH)
    out = torch.empty_like(x)
    spare = torch.empty_like(x)
    works = {
        "sum": by_hand.dft,
        "launches": partial(by_hand.passes, spare=spare),
        "block": by_hand.block,
    }
    for radix in (2, 4, 8, 16):
        together = max(1, LADDER_THREADS * radix // LADDER_LENGTH)
        deal = Deal(radix, together, 4)
        rightness.rows(LADDER_LENGTH, deal, FORWARD)
        works[f"radix_{radix}"] = plans.Rows(LADDER_LENGTH, deal=deal)
    rivals = bound(works, x, out)
    rivals["cuFFT"] = cufft.Plan(x, out)
    rivals["copy"] = partial(out.copy_, x)
    moved = x.nbytes + out.nbytes
    race(report, f"fft/ladder/{LADDER_LENGTH}", rivals, bytes=moved)


# ---- the command ------------------------------------------------------------------------------

PARTS = {
    "rows": bench_rows,
    "long": bench_long,
    "pictures": bench_pictures,
    "filter": bench_filter,
    "real": bench_real,
    "ladder": bench_ladder,
}


def codes(part: str) -> Iterator[plans.Code]:
    """The kernels that a part tries many of."""
    if part == "rows":
        for n in LENGTHS:
            for deal in deals_for(n):
                yield plans.rows_code(n, False, deal)
    elif part == "long":
        for deal in LONG_DEALS:
            yield from plans.long_codes(LONG_SIDE, False, deal)
    elif part == "pictures":
        for deal in PICTURE_DEALS:
            yield from plans.picture_codes(SIDE, False, deal)
    elif part == "filter":
        for size in FILTER_SIZES:
            for rows in DIRECT_ROWS:
                yield other_plans.direct_code(size, rows)
    elif part == "real":
        for n in REAL_LENGTHS:
            for deal in real_deals(n):
                yield other_plans.real_code(n, deal)


def compile_all(report: Report, parts: list[str]) -> None:
    """Compiles side by side what the parts need."""
    start = time.monotonic()
    wanted = unique(code for part in parts for code in codes(part))
    with ThreadPoolExecutor() as pool:
        for code in wanted:
            name = code[-1]
            pool.submit(report.attempt, f"compile {name}", plans.kernel, code)
    seconds = time.monotonic() - start
    report.say(f"compiled {len(wanted)} kernels in {seconds:.0f} s")


def main() -> None:
    options = command_line(__doc__, 150, PARTS).parse_args()
    report = Report(options.out, options.budget)
    if has_gpu():
        compile_all(report, options.parts)
        report.attempt("cuFFT's accuracy", cufft_accuracy, report)
    run_parts(report, {name: PARTS[name] for name in options.parts})
    print(table(report))


if __name__ == "__main__":
    main()
