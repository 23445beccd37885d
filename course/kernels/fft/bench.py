"""Checks the kernels of this folder, then times them beside cuFFT, all in one run.

    python -m course.kernels.fft.bench --out fft.json [--only rows long pictures] [--budget 60]

Every rival gets the same input, in turn, with the L2 cache overwritten before each repeat. Each
result is written as soon as it is there, and handed to the recording command where that runs this
one. An error is written down and does not end the run. Without a GPU nothing is timed: the kernels
are checked in small sizes.
"""

import argparse
import functools
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from course.kernels.fft import by_hand, cufft, other_plans, plans
from course.kernels.fft.kernels import DEVICE
from course.kernels.fft.plans import Deal, TwoPass
from course.kernels.reductions.bench import Log, clock, race, speedup
from utils.engine import has_gpu

POINTS = 1 << 27  # of what is timed: 1 GiB in, 1 GiB out
PICTURES, SIDE = 64, 1024
LONG = 1 << 16
TOLERANCE = 6e-7  # relative error in the 2-norm; float32 keeps 6e-8 of each number
SWEEP_REPEATS, RACE_REPEATS = 7, 40
SHARED_BYTES = 227 << 10  # of a multiprocessor, for blocks
REGISTERS = 1 << 16
#: Ways to load and store; the first is that of the kernels as they are
HINTS = (
    (),
    ("-DSTORE=__stcs",),
    ("-DLOAD=__ldcs",),
    ("-DLOAD=__ldcs", "-DSTORE=__stcs"),
    ("-DLOAD=__ldcg", "-DSTORE=__stcg"),
)
REAL_LENGTHS = (1024, 4096)
FILTER_SIZES = (3, 5, 7, 9, 11, 13, 15, 21, 31)
DIRECT_ROWS = (8, 16)
FILTER_DEALS = [
    (Deal(16, rows, row_blocks), Deal(radix, columns, blocks))
    for rows, row_blocks in ((4, 3), (4, 4))
    for radix, columns, blocks in ((16, 8, 2), (32, 8, 2), (32, 16, 1))
]
LENGTHS = (1024, 8192, 256, 4096, 512, 2048)


def random_complex(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.complex64, device=DEVICE)


# ---- right? -----------------------------------------------------------------------------------


def error_of(result: torch.Tensor, right: torch.Tensor) -> float:
    """The relative error in the 2-norm; NaN if any number is NaN."""
    return ((result - right).norm() / right.norm()).item()


def verify(what: str, work, x: torch.Tensor, reference) -> float:
    """Runs work(x, out) on a poisoned output; its error. Raises AssertionError if it is wrong."""
    out = torch.full_like(x, float("nan"))
    work(x, out)
    error = error_of(out, reference(x.to(torch.complex128)))
    assert error < TOLERANCE, f"{what}: error {error}"
    return error


def ways(inverse: bool):
    """(inverse, name of PyTorch's function's end) for one direction or both."""
    return (False, True) if inverse else (False,)


def check_rows(log: Log, n: int, deal: Deal | None = None, back: bool = True) -> bool:
    for inverse in ways(back):
        reference = torch.fft.ifft if inverse else torch.fft.fft
        work = plans.Rows(n, inverse, deal)
        for count in (1, 7, 133):
            error = verify(f"rows of {n}", work, random_complex(count, n), reference)
    if deal is None:
        log.add(f"fft/accuracy/{n}", error, "1")
    return True


def check_long(log: Log, n: int, deal: TwoPass | None = None, items: int = 3) -> bool:
    for inverse in ways(deal is None):
        reference = torch.fft.ifft if inverse else torch.fft.fft
        work = plans.Long(n, inverse, deal)
        x = random_complex(items, n)
        error = verify(f"long {n}", work, x, reference)
        in_two = functools.partial(work.two_launches, between=torch.empty_like(x))
        verify(f"long {n} in two", in_two, x, reference)
    if deal is None:
        log.add(f"fft/accuracy/{n}", error, "1")
    return True


def check_pictures(log: Log, side: int, deal: TwoPass | None = None, count: int = 3) -> bool:
    for inverse in ways(deal is None):
        reference = torch.fft.ifft2 if inverse else torch.fft.fft2
        work = plans.Pictures(side, inverse, deal)
        x = random_complex(count, side, side)
        error = verify(f"pictures of {side}", work, x, reference)
        verify(f"pictures of {side} in two", work.two_launches, x, reference)
    if deal is None:
        log.add(f"fft2/accuracy/{side}", error, "1")
    return True


def check_cufft(log: Log) -> None:
    """How far off cuFFT is, for comparison."""
    for n in LENGTHS:
        x = random_complex(133, n)
        error = error_of(torch.fft.fft(x), torch.fft.fft(x.to(torch.complex128)))
        log.add(f"fft/accuracy/cufft/{n}", error, "1")
        log.say(f"cuFFT {n}: error {error:.2e}")


# ---- rows -------------------------------------------------------------------------------------


def deals_for(n: int) -> list[Deal]:
    """Ways to deal out a transform of n points that fit a multiprocessor."""
    found = []
    for radix, registers in ((8, 40), (16, 64), (32, 112)):
        threads_each = n // radix
        if threads_each > 1024:
            continue
        for threads in sorted({max(threads_each, size) for size in (64, 128, 256)}):
            together = threads // threads_each
            if together * threads_each != threads:
                continue
            by_shared = SHARED_BYTES // (plans.padded(n, radix) * 8 * together + 1024)
            most = min(by_shared, REGISTERS // (threads * registers), 32)
            fewer = most * 3 // 4
            found += [Deal(radix, together, blocks) for blocks in {most, fewer} if blocks]
    return found


def bench_rows(log: Log) -> None:
    if not has_gpu():
        return log.attempt("check rows", check_small_rows, log)
    for n in LENGTHS:
        log.attempt(f"rows of {n}", time_rows, log, n)


def check_small_rows(log: Log) -> None:
    for n in (2, 8, 64, 256, 1024):
        check_rows(log, n)


def time_rows(log: Log, n: int) -> None:
    log.attempt(f"check {n}", check_rows, log, n)
    power = n.bit_length() - 1
    x = random_complex(POINTS // n, n)
    out = torch.empty_like(x)
    right = {}
    for deal in deals_for(n):
        if log.attempt(f"check {n} {deal}", check_rows, log, n, deal, False):
            right[deal] = plans.Rows(n, deal=deal)
    rivals = {deal: lambda work=work: work(x, out) for deal, work in right.items()}
    rates = sweep(log, f"2^{power}", rivals, 16 * POINTS)
    best = plans.Rows(n, deal=max(rates, key=rates.get))
    default = plans.Rows(n)
    other = cufft.Plan(x, out)
    rivals = {"cuFFT": other, "copy": lambda: out.copy_(x), "ours": lambda: best(x, out)}
    rivals["default"] = lambda: default(x, out)
    name = f"fft/2^{power}"
    times = race(log, name, rivals, 16 * POINTS, RACE_REPEATS)
    speedup(log, f"{name}/share_of_cufft", times, "ours", "cuFFT")
    speedup(log, f"{name}/share_of_copy", times, "ours", "copy")
    other.close()


def sweep(log: Log, name: str, rivals: dict, moved: float) -> dict:
    """Bytes a second of each; says the best ones."""
    times = clock(rivals, SWEEP_REPEATS)
    rates = {way: moved / middle * 1e3 for way, (middle, _) in times.items()}
    for way in sorted(rates, key=rates.get, reverse=True):
        log.lines.append(f"{name} {rates[way] / 1e9:6.0f} GB/s {way}")
    return rates


# ---- two passes -------------------------------------------------------------------------------

LONG_DEALS = [
    TwoPass(16, together, blocks, lag, flags)
    for together, blocks, lags in (
        (32, 2, (112, 128, 144, 160, 176, 192)),
        (16, 4, (256, 288, 320, 352)),
    )
    for lag in lags
    for flags in ((), plans.STREAMED)
]
PICTURE_DEALS = [
    TwoPass(32, together, blocks, lag, flags)
    for together, blocks, lags in ((16, 1, (80, 96, 112, 128, 144, 160)), (8, 2, (224, 256, 288)))
    for lag in lags
    for flags in HINTS[:3]
]


def bench_long(log: Log) -> None:
    if not has_gpu():
        return log.attempt("check long", check_long, log, 1024, TwoPass(16, 16, 1, 2))
    right = [
        deal
        for deal in LONG_DEALS
        if log.attempt(f"check long {deal}", check_long, log, LONG, deal, 50)
    ]
    log.attempt("check long", check_long, log, LONG)
    log.attempt("time long", time_long, log, right)


def time_long(log: Log, deals: list[TwoPass]) -> None:
    x = random_complex(POINTS // LONG, LONG)
    out, between = torch.empty_like(x), torch.empty_like(x)
    works = {deal: plans.Long(LONG, deal=deal) for deal in deals}
    rivals = {deal: lambda work=work: work(x, out) for deal, work in works.items()}
    rates = sweep(log, "2^16 in one", rivals, 16 * POINTS)
    rivals = {
        deal: lambda work=work: work.two_launches(x, out, between) for deal, work in works.items()
    }
    in_two = sweep(log, "2^16 in two", rivals, 16 * POINTS)
    best, best_in_two = (works[max(found, key=found.get)] for found in (rates, in_two))
    rivals = {
        "cuFFT": cufft.Plan(x, out),
        "copy": lambda: out.copy_(x),
        "two_launches": lambda: best_in_two.two_launches(x, out, between),
        "ours": lambda: best(x, out),
    }
    times = race(log, "fft/2^16", rivals, 16 * POINTS, RACE_REPEATS)
    speedup(log, "fft/2^16/share_of_cufft", times, "ours", "cuFFT")
    speedup(log, "fft/2^16/two_launches/share_of_cufft", times, "two_launches", "cuFFT")
    rivals["cuFFT"].close()


def bench_pictures(log: Log) -> None:
    if not has_gpu():
        return log.attempt("check pictures", check_pictures, log, 32, TwoPass(8, 8, 1, 1))
    right = [
        deal
        for deal in PICTURE_DEALS
        if log.attempt(f"check pictures {deal}", check_pictures, log, SIDE, deal, 5)
    ]
    log.attempt("check pictures", check_pictures, log, SIDE)
    log.attempt("time pictures", time_pictures, log, right)


def time_pictures(log: Log, deals: list[TwoPass]) -> None:
    x = random_complex(PICTURES, SIDE, SIDE)
    out = torch.empty_like(x)
    moved = 16 * x.numel()
    works = {deal: plans.Pictures(SIDE, deal=deal) for deal in deals}
    rivals = {deal: lambda work=work: work(x, out) for deal, work in works.items()}
    rates = sweep(log, "pictures in one", rivals, moved)
    rivals = {deal: lambda work=work: work.two_launches(x, out) for deal, work in works.items()}
    in_two = sweep(log, "pictures in two", rivals, moved)
    best, best_in_two = (works[max(found, key=found.get)] for found in (rates, in_two))
    rivals = {
        "cuFFT": cufft.Plan(x, out, 2),
        "copy": lambda: out.copy_(x),
        "two_launches": lambda: best_in_two.two_launches(x, out),
        "ours": lambda: best(x, out),
    }
    times = race(log, "fft2/1024", rivals, moved, RACE_REPEATS)
    speedup(log, "fft2/1024/share_of_cufft", times, "ours", "cuFFT")
    speedup(log, "fft2/1024/two_launches/share_of_cufft", times, "two_launches", "cuFFT")
    rivals["cuFFT"].close()


# ---- real input, any length -------------------------------------------------------------------


def check_real(log: Log, n: int, deal: Deal | None = None) -> bool:
    work = other_plans.Real(n, deal)
    for count in (1, 7, 133):
        x = torch.randn(count, n, device=DEVICE)
        out = torch.full((count, n // 2 + 1), float("nan"), dtype=torch.complex64, device=DEVICE)
        work(x, out)
        error = error_of(out, torch.fft.rfft(x.double()))
        assert error < TOLERANCE, f"real {n}: error {error}"
    if deal is None:
        log.add(f"rfft/accuracy/{n}", error, "1")
    return True


def check_any(log: Log, n: int) -> None:
    for inverse, reference in ((False, torch.fft.fft), (True, torch.fft.ifft)):
        work = other_plans.AnyLength(n, inverse)
        error = verify(f"any length {n}", work, random_complex(5, n), reference)
    log.add(f"fft/accuracy/any/{n}", error, "1")


def bench_real(log: Log) -> None:
    for n in (4, 64, 1024):
        log.attempt(f"check real {n}", check_real, log, n)
    for n in (1, 2, 3, 5, 7, 97, 101, 1009):
        log.attempt(f"check length {n}", check_any, log, n)
    if has_gpu():
        for n in REAL_LENGTHS:
            log.attempt(f"time real {n}", time_real, log, n)
        log.attempt("time any length", time_any, log, 1009)


def time_real(log: Log, n: int) -> None:
    x = torch.randn(2 * POINTS // n, n, device=DEVICE)
    out = torch.empty(x.shape[0], n // 2 + 1, dtype=torch.complex64, device=DEVICE)
    moved = 4 * x.numel() + 8 * out.numel()
    deals = [d for d in deals_for(n // 2) if d.radix < 32 and d.together * n <= 8192]
    deals = [deal for deal in deals if log.attempt(f"check {deal}", check_real, log, n, deal)]
    works = {deal: other_plans.Real(n, deal) for deal in deals}
    rivals = {deal: lambda work=work: work(x, out) for deal, work in works.items()}
    rates = sweep(log, f"real {n}", rivals, moved)
    best = works[max(rates, key=rates.get)]
    rivals = {"cuFFT": cufft.Plan(x, out), "ours": lambda: best(x, out)}
    name = f"rfft/2^{n.bit_length() - 1}"
    times = race(log, name, rivals, moved, RACE_REPEATS)
    speedup(log, f"{name}/share_of_cufft", times, "ours", "cuFFT")
    rivals["cuFFT"].close()


def time_any(log: Log, n: int) -> None:
    x = random_complex(POINTS // 4 // n, n)
    out = torch.empty_like(x)
    work = other_plans.AnyLength(n)
    rivals = {"cuFFT": cufft.Plan(x, out), "ours": lambda: work(x, out)}
    times = race(log, f"fft/{n}", rivals, 16 * x.numel(), RACE_REPEATS)
    speedup(log, f"fft/{n}/share_of_cufft", times, "ours", "cuFFT")
    rivals["cuFFT"].close()


# ---- a picture's filter: through the transform, or directly? ----------------------------------


def bench_filter(log: Log) -> None:
    log.attempt("check filter", check_filter)
    if not has_gpu():
        return
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    x = torch.randn(PICTURES, SIDE, SIDE, device=DEVICE)
    log.attempt("tune filter", tune_filter, log, x)
    for size in FILTER_SIZES:
        log.attempt(f"time filter {size}", time_filter, log, x, size)


def check_filter(side: int = 64) -> None:
    check_directly(side)
    x, taps = torch.randn(6, side, side, device=DEVICE), torch.randn(7, 4, device=DEVICE)
    out = torch.full_like(x, float("nan"))
    other_plans.Filter(side, taps)(x, out)
    right = directly(x.double(), taps.double())
    error = error_of(out[:, : side - 6, : side - 3], right)
    assert error < 2 * TOLERANCE, f"filter: error {error}"


def check_directly(side: int) -> None:
    x, taps = torch.randn(3, side + 7, side + 7, device=DEVICE), torch.randn(5, 5, device=DEVICE)
    out = torch.full_like(x, float("nan"))
    other_plans.Direct(side + 7, taps)(x, out)
    error = error_of(out[:, : side + 3, : side + 3], directly(x.double(), taps.double()))
    assert error < TOLERANCE, f"direct filter: error {error}"


def directly(x: torch.Tensor, taps: torch.Tensor) -> torch.Tensor:
    """Every picture filtered by PyTorch, as a batch."""
    return torch.nn.functional.conv2d(x[:, None], taps[None, None])[:, 0]


def depthwise(x: torch.Tensor, taps: torch.Tensor) -> torch.Tensor:
    """The same with the pictures as channels of one."""
    weights = taps[None, None].expand(x.shape[0], 1, *taps.shape).contiguous()
    return torch.nn.functional.conv2d(x[None], weights, groups=x.shape[0])[0]


def tune_filter(log: Log, x: torch.Tensor) -> None:
    out, taps = torch.empty_like(x), torch.randn(5, 5, device=DEVICE)
    rivals = {}
    for rows, columns in FILTER_DEALS:
        work = other_plans.Filter(SIDE, taps, rows, columns)
        work(x, out)
        right = directly(x, taps)
        error = error_of(out[:, : SIDE - 4, : SIDE - 4], right)
        assert error < 2 * TOLERANCE, f"filter {rows} {columns}: error {error}"
        rivals[rows, columns] = lambda work=work: work(x, out)
    sweep(log, "filter", rivals, 24 * x.numel())


def time_filter(log: Log, x: torch.Tensor, size: int) -> None:
    taps = torch.randn(size, size, device=DEVICE)
    out = torch.empty_like(x)
    work = other_plans.Filter(SIDE, taps)
    work(x, out)
    right = directly(x, taps)
    cut = SIDE - size + 1
    error = error_of(out[:, :cut, :cut], right)
    assert error < 1e-5, f"filter {size}: error {error}"
    transformed = torch.fft.rfft2(taps, (SIDE, SIDE)).conj()
    rivals = {
        "torch": lambda: directly(x, taps),
        "torch_depthwise": lambda: depthwise(x, taps),
        "torch_fft": lambda: torch.fft.irfft2(torch.fft.rfft2(x) * transformed),
        "ours": lambda: work(x, out),
    }
    for rows in DIRECT_ROWS:
        direct = other_plans.Direct(SIDE, taps, rows)
        direct(x, out.fill_(float("nan")))
        error = error_of(out[:, :cut, :cut], right)
        assert error < 1e-5, f"direct {size}: error {error}"
        rivals[f"direct_{rows}"] = lambda direct=direct: direct(x, out)
    times = race(log, f"fft/filter/{size}", rivals, 8 * x.numel(), 10)
    directly_best = min(times[label][0] for label in times if label.startswith("direct"))
    ratio = directly_best / times["ours"][0]
    log.add(f"fft/filter/{size}/speedup_over_direct", ratio, "1")


# ---- the ladder, at 256 points ----------------------------------------------------------------

LADDER_POINTS = 1 << 24  # of all rows together
LADDER_LENGTH = by_hand.BLOCK_POINTS


def check_by_hand() -> None:
    for n, count in ((32, 5), (256, 7)):
        x = random_complex(count, n)
        passes = functools.partial(by_hand.passes, spare=torch.empty_like(x))
        whole = by_hand.warp if n == by_hand.WARP else by_hand.block
        for work in (by_hand.dft, passes, whole):
            verify(f"{work} of {n}", work, x, torch.fft.fft)


def bench_ladder(log: Log) -> None:
    log.attempt("check by hand", check_by_hand)
    if has_gpu():
        log.attempt("time the ladder", time_ladder, log)


def time_ladder(log: Log) -> None:
    x = random_complex(LADDER_POINTS // LADDER_LENGTH, LADDER_LENGTH)
    out, spare = torch.empty_like(x), torch.empty_like(x)
    rivals = {
        "sum": lambda: by_hand.dft(x, out),
        "launches": lambda: by_hand.passes(x, out, spare),
        "block": lambda: by_hand.block(x, out),
    }
    for radix in (2, 4, 8, 16):
        together = max(1, 128 * radix // LADDER_LENGTH)
        work = plans.Rows(LADDER_LENGTH, deal=Deal(radix, together, 4))
        verify(f"radix {radix}", work, x, torch.fft.fft)
        rivals[f"radix_{radix}"] = lambda work=work: work(x, out)
    rivals["cuFFT"] = cufft.Plan(x, out)
    rivals["copy"] = lambda: out.copy_(x)
    race(log, f"fft/ladder/{LADDER_LENGTH}", rivals, 16 * x.numel(), 10)


# ---- the command ------------------------------------------------------------------------------

PARTS = {
    "rows": bench_rows,
    "long": bench_long,
    "pictures": bench_pictures,
    "filter": bench_filter,
    "real": bench_real,
    "ladder": bench_ladder,
}


def compile_all(log: Log, parts: list[str]) -> None:
    """Compiles side by side what the parts need."""
    codes = []
    if "rows" in parts:
        codes += [plans.rows_code(n, False, deal) for n in LENGTHS for deal in deals_for(n)]
    if "long" in parts:
        codes += [code for d in LONG_DEALS for code in plans.long_codes(256, False, d)]
    if "pictures" in parts:
        codes += [code for d in PICTURE_DEALS for code in plans.picture_codes(SIDE, False, d)]
    if "filter" in parts:
        codes += [code for how in FILTER_DEALS for code in other_plans.filter_codes(SIDE, *how)]
        sizes = [(size, rows) for size in FILTER_SIZES for rows in DIRECT_ROWS]
        codes += [other_plans.direct_code(*how) for how in sizes]
    if "real" in parts:
        deals = [(n, deal) for n in REAL_LENGTHS for deal in deals_for(n // 2) if deal.radix < 32]
        codes += [other_plans.real_code(n, deal) for n, deal in deals]
    codes = list(dict.fromkeys(codes))
    start = time.monotonic()
    with ThreadPoolExecutor() as pool:
        for code in codes:
            pool.submit(log.attempt, f"compile {code[-1]}", plans.kernel, code)
    log.say(f"compiled {len(codes)} kernels in {time.monotonic() - start:.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=float, default=150, help="seconds")
    parser.add_argument("--only", nargs="*", default=list(PARTS), choices=list(PARTS))
    options = parser.parse_args()
    log = Log(options.out, options.budget)
    if has_gpu():
        compile_all(log, options.only)
        log.attempt("cuFFT's accuracy", check_cufft, log)
    for part in options.only:
        start = time.monotonic()
        if log.left() > 0:
            log.attempt(part, PARTS[part], log)
        log.say(f"-- {part}: {time.monotonic() - start:.0f} s, {log.left():.0f} s left")


if __name__ == "__main__":
    main()
