"""Check ring attention, then measure it on all GPUs: each one's rate beside that of one alone.

    python -m course.kernels.attention.bench_ring --out ring.json --budget 130

Beside ring.json lies ring.jsonl, the entries for assets/results. One sequence of a length, 16 heads
of 128 numbers, bfloat16. Alone: each GPU has the whole sequence for itself. Ring: each of the GPUs
has its share of the queries, and all of the keys come to it. All GPUs work at the same time, in
either case, and only after a while of the same work: a GPU that was idle runs faster for some
milliseconds than its power limit allows in the long run. Without two GPUs the kernels are checked
on devices that the processor plays, and nothing is measured.
"""

import itertools
import os
import statistics
import time
from functools import partial

import torch

from course.kernels.attention import reference, rightness, ring
from course.kernels.attention.bench import flops_of
from course.kernels.attention.reference import Case
from course.kernels.bench.command import command_line
from course.kernels.bench.report import Report
from course.kernels.many_gpus import communicator as comm
from course.kernels.many_gpus.launch import launch
from course.kernels.many_gpus.recording import Clock, slowest
from utils import has_gpu, results

#: By how many GPUs there are
LENGTHS = {2: (16384, 32768, 65536), 4: (65536, 262144)}
HEADS = 16
ROUNDS, REPEATS = 4, 5  # alone and together in turn, so often; runs of each
WARM = 0.3  # seconds of the same work before its runs are timed
#: Seconds of a budget for the ranks to end
AROUND = 10
#: At full size two roundings to bfloat16 lie between the ring's result and the whole's
APART = 2**-6
SMALL = (Case(1, 512, heads=2), Case(2, 256, heads=4, key_heads=2, causal=True))


def session(group, seconds: float) -> None:
    """On every rank: check, then measure length after length while there is time."""
    clock = Clock(seconds)
    lengths = LENGTHS.get(group.size, LENGTHS[4])
    longest = Case(1, lengths[-1] // group.size, heads=HEADS)
    heap = ring.heap_for(torch.empty(longest.shape_of_keys, dtype=torch.bfloat16, device="meta"))
    communicator = comm.Communicator(group, heap, ring.SCRATCH).connect()
    for case in SMALL:
        error = check_small(communicator, case)
        say(group, f"{case}: {error:.3f} of what roundings explain")
    shares = []
    for length, causal in itertools.product(lengths, (False, True)):
        if clock.agreed(group) < AROUND:
            say(group, f"{length}, causal {causal}, and all after it: no time left")
            break
        share = measure(communicator, Case(1, length, heads=HEADS, causal=causal))
        if not causal:
            shares.append(share)
    if group.rank == 0 and len(shares) == len(lengths):
        worst, spread = min(shares)
        results.record(f"attention/ring/{group.size}/share_of_one", worst, "1", spread)
    group.barrier()
    communicator.close()


def say(group, text: str) -> None:
    """Print on one rank only."""
    if group.rank == 0:
        print(text, flush=True)


def whole(case: Case) -> tuple:
    """q, k, v of the whole sequence, on each rank the same."""
    return reference.inputs(case, seed=case.queries)


def rank_of(communicator, case: Case, q, k, v) -> tuple[torch.Tensor, ring.Rank]:
    """(its rows of the sequence, this rank's work)."""
    rows = ring.shares(case.queries, communicator.size, case.causal)[communicator.rank]
    mine = [x[:, rows].contiguous() for x in (q, k, v)]
    return rows, ring.Rank(communicator, *mine, causal=case.causal, zigzag=case.causal)


def check_small(communicator, case: Case) -> float:
    """The largest error against float64, as a share of what roundings explain."""
    q, k, v = whole(case)
    group, mark = communicator.group, communicator.mark()
    rows, rank = rank_of(communicator, case, q, k, v)
    group.barrier()  # all have published their keys
    mine = [x.float().cpu().numpy() for x in rank.run()]  # exactly, and no tensor: it is sent
    everyone = group.all_gather((rows.numpy(), *mine))
    communicator.release(mark)
    out = torch.empty(q.shape, dtype=q.dtype)
    lse = torch.empty(q.shape[0], q.shape[2], q.shape[1])
    for own, part, part_lse in everyone:
        out[:, own] = torch.from_numpy(part).to(q.dtype)
        lse[..., own] = torch.from_numpy(part_lse)
    error = rightness.error_in(out.to(q.device), lse.to(q.device), q, k, v, case.causal)
    assert error <= 1, f"{case}: {error:.3g} times what roundings explain"
    return error


def measure(communicator, case: Case) -> tuple[float, float]:
    """(each GPU's share of one GPU's rate, spread); rank 0 records it and what it is made of."""
    q, k, v = whole(case)
    group, mark = communicator.group, communicator.mark()
    rows, rank = rank_of(communicator, case, q, k, v)
    in_turn = partial(rank.run, overlap=False)
    out = torch.empty_like(q)
    lse = torch.empty(case.batch, case.heads, case.queries, device=q.device)
    alone = partial(ring.fastest(), q, k, v, case.causal, out=out, lse=lse)
    group.barrier()
    alone()
    for run in (rank.run, in_turn):
        check_large(case, out[:, rows], run()[0])
    group.barrier()
    found = {"copy": milliseconds(rank.fetch)}
    runs = [("alone", alone), ("ring", rank.run), ("without_overlap", in_turn)]
    for _ in range(ROUNDS):
        for name, run in runs:
            group.barrier()
            found[name] = found.get(name, []) + milliseconds(run)
        runs.reverse()  # whoever comes first has the cooler GPU
    group.barrier()
    everyone = group.all_gather((found, rank.timeline()))
    communicator.release(mark)
    times = {name: slowest([times for times, _ in everyone], name) for name in found}
    keep_timeline(case, group, [spans for _, spans in everyone])
    return keep(case, group, times)


def check_large(case: Case, expected, found) -> None:
    """AssertionError where the ring's result is not that of one GPU, which small cases prove."""
    apart = (found.float() - expected.float()).abs().max() / expected.float().abs().max()
    assert apart <= APART, f"{case}: {apart:.2g} apart from one GPU's result"


def milliseconds(run) -> list[float]:
    """Of some runs, one after the other, when the same work has warmed the GPU."""
    begun = time.monotonic()
    while time.monotonic() - begun < WARM:
        run()
        ring.wait()
    marks = [ring.mark(None)]
    for _ in range(REPEATS):
        run()
        marks.append(ring.mark(None))
    ring.wait()
    pairs = zip(marks[:-1], marks[1:], strict=True)
    return [first.elapsed_time(second) for first, second in pairs]


def name_of(case: Case, ranks: int) -> str:
    """What names of a case's results begin with."""
    kind = "ring_causal" if case.causal else "ring"
    return f"attention/{kind}/{ranks}/{case.queries}"


def keep_timeline(case: Case, group, timelines: list[list[ring.Span]]) -> None:
    """Record how much of the copies lay beside work, at worst, and when what ran on rank 0."""
    if group.rank:
        return
    name = name_of(case, group.size)
    share = min(ring.hidden(spans) for spans in timelines)
    results.record(f"{name}/hidden", share)
    for span in timelines[0]:
        place = f"{name}/timeline/{span.what}/{span.turn}"
        results.record(f"{place}/begin", span.begin / 1e3, "s")
        results.record(f"{place}/end", span.end / 1e3, "s")
        print(f"  {span.what} {span.turn}: {span.begin:.3f} to {span.end:.3f} ms", flush=True)
    print(f"{name}: {share:.3f} of the copies' time beside work", flush=True)


def keep(case: Case, group, times: dict) -> tuple[float, float]:
    """Record rates and shares on rank 0. times: milliseconds of the slowest rank, by name."""
    name = name_of(case, group.size)
    median = {what: statistics.median(of) for what, of in times.items()}
    spread = {what: half_of_quartiles(of) / median[what] for what, of in times.items()}

    def share(what):
        value = median["alone"] / group.size / median[what]
        return value, value * (spread["alone"] + spread[what])

    if group.rank == 0:
        flops = flops_of(case)
        for what, gpus in (("alone", 1), ("ring", group.size)):
            rate = flops / gpus / median[what] / 1e9
            results.record(f"{name}/{what}/tflops", rate, "TFLOP/s", rate * spread[what])
        seconds = median["copy"] / 1e3
        results.record(f"{name}/copy", seconds, "s", seconds * spread["copy"])
        for what, suffix in (("without_overlap", "/without_overlap"), ("ring", "")):
            value, around = share(what)
            results.record(f"{name}{suffix}/share_of_one", value, "1", around)
            print(f"{name}{suffix}/share_of_one {value:.3f} ± {around:.3f}", flush=True)
        print({what: round(value, 3) for what, value in median.items()}, "ms", flush=True)
    return share("ring")


def half_of_quartiles(values: list[float]) -> float:
    """Half the distance between the first and the third quartile."""
    first, _, third = statistics.quantiles(values, n=4)
    return (third - first) / 2


def check_virtual(case: Case, ranks: int, zigzag: bool) -> float:
    """The same as `check_small`, with all ranks in this process."""
    q, k, v = whole(case)
    out, lse = ring.ring(q, k, v, case.causal, ranks=ranks, zigzag=zigzag)
    error = rightness.error_in(out, lse, q, k, v, case.causal)
    assert error <= 1, f"{case}, {ranks} ranks: {error:.3g} times what roundings explain"
    return error


VIRTUAL = (
    (Case(1, 64, heads=2, dim=64), 2, False),
    (Case(2, 48, heads=4, key_heads=2, dim=64, causal=True), 2, True),
    (Case(1, 48, heads=2, dim=64, causal=True), 4, True),
    (Case(1, 45, heads=2, dim=64, causal=True), 3, False),
)


def main() -> None:
    """Command line."""
    options = command_line(__doc__, 100).parse_args()
    report = Report(options.out.with_suffix(".json"), options.budget)
    gpus = torch.cuda.device_count() if has_gpu() else 0
    if gpus < 2:
        os.environ.setdefault("CUDA_CPU_DEVICES", "4")
        for case, ranks, zigzag in VIRTUAL:
            error = report.attempt(f"{case}, {ranks}", check_virtual, case, ranks, zigzag)
            report.put("checks", f"{case}, {ranks} ranks, zigzag {zigzag}", error)
        print(report.entries["checks"], "two GPUs are needed to measure", sep="\n")
        return
    from course.kernels.attention import bench_ring  # by its name, also where this is __main__

    comm.library()  # compiled here, and not by each rank
    left = report.left()
    report.attempt(
        "session", partial(launch, bench_ring.session, gpus, [left - AROUND], timeout=left)
    )
    report.put("clock", "seconds left", round(report.left()))


if __name__ == "__main__":
    main()
