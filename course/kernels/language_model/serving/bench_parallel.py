"""One model on all GPUs of a machine against one of them: a token's time, tensor parallel.

    python -m course.kernels.language_model.serving.bench_parallel --out parallel.json --budget 120

Beside parallel.json lies parallel.jsonl, the entries for assets/results. One token of one sequence
at position 1,000, bfloat16, random weights; products by PyTorch, attention and sums by the course,
all of it one CUDA graph, on one GPU as on several. What a model of both predicts is printed before
it is measured. Each rank measures; the slowest counts. Without two GPUs the ranks are checked in
one process, and nothing is measured.
"""

import statistics
from functools import partial

import torch

from course.kernels.fusion.racing import record
from course.kernels.language_model import problem
from course.kernels.language_model.problem import EIGHT_BILLION, ONE_BILLION, Config
from course.kernels.language_model.serving import parallel
from course.kernels.language_model.serving.batch import BatchRunner
from course.kernels.language_model.serving.parallel import predicted, runner_of
from course.kernels.language_model.serving.scheduler import BLOCK
from course.kernels.log import command_line
from course.kernels.many_gpus import communicator as comm
from course.kernels.many_gpus.launch import launch
from course.kernels.many_gpus.recording import Clock, slowest
from course.kernels.report import Report
from utils import has_gpu
from utils.occupancy import ceil_div

POSITION = 1000
LONGEST = 1040
ROUNDS, REPEATS = 5, 20
AROUND = 15  # seconds of a budget for the ranks to begin and to end
MODELS = {"one_billion": ONE_BILLION, "eight_billion": EIGHT_BILLION}
HEADLINE = "one_billion"


def session(group, seconds: float) -> None:
    """On every rank: each model, while there is time."""
    clock = Clock(seconds)
    communicator = comm.Communicator(group, parallel.ROOM, parallel.ROOM).connect()
    for name, config in MODELS.items():
        if clock.agreed(group) < AROUND:
            say(group, f"{name}: no time left")
            break
        measure(group, communicator, name, config)
        torch.cuda.empty_cache()
    group.barrier()
    communicator.close()


def say(group, text: str) -> None:
    """Print on one rank only."""
    if group.rank == 0:
        print(text, flush=True)


def measure(group, communicator, name: str, config: Config) -> None:
    """Check a model on all ranks, predict, and time it on one and on all."""
    weights = problem.weights(config, 0, torch.bfloat16, "cuda")
    blocks = ceil_div(LONGEST, BLOCK)
    how = {"blocks": blocks, "longest": LONGEST}
    alone = BatchRunner(config, weights, **how)
    runs = {"alone": prepared(alone)}
    group.barrier()
    together = runner_of(config, weights, group.rank, group.size, communicator.all_reduce, **how)
    runs["together"] = prepared(together)  # all ranks launch at the same time: sums wait
    communicator.check()
    apart = check(alone, together, group)
    say(group, f"{name}: logits are {apart:.2%} of the largest apart")
    found = {label: [] for label in runs}
    group.barrier()
    found["alone"] += milliseconds(runs["alone"])
    seconds = group.all_gather(statistics.median(found["alone"]) / 1e3)
    told = predicted(config, group.size, POSITION, alone=max(seconds))
    say(group, f"{name}, before it is measured: {told}")
    for _ in range(ROUNDS):
        for label, run in runs.items():
            group.barrier()
            found[label] += milliseconds(run)
    communicator.check()
    everyone = group.all_gather(found)
    if group.rank == 0:
        keep(name, group.size, {label: slowest(everyone, label) for label in runs}, told.speedup)


def prepared(runner: BatchRunner):
    """A function that runs a step of one token at POSITION."""
    rows = runner.rows(1)
    table = torch.arange(runner.table_length)[None].int()
    rows.fill(torch.tensor([7]), torch.tensor([POSITION]), table, torch.tensor([0]))
    return rows.run


def check(alone: BatchRunner, together: BatchRunner, group) -> float:
    """Some tokens on one GPU and on all: how far the logits are apart, as a share of the largest.

    AssertionError where roundings do not explain it, or the ranks differ.
    """
    worst = 0.0
    table = torch.arange(alone.table_length)[None].int()
    for position in range(20):
        told = torch.tensor([31 * position]), torch.tensor([position]), table, torch.tensor([0])
        expected = alone.step(*told).float()
        found = together.step(*told).float()
        largest = expected.abs().max()
        worst = max(worst, ((found - expected).abs().max() / largest).item())
        sums = group.all_gather(found.double().sum().item())
        assert len(set(sums)) == 1, f"position {position}: the ranks' logits differ"
    assert worst <= parallel.ROUNDED * (alone.config.layers / 2) ** 0.5, f"{worst:.2g} apart"
    for runner in (alone, together):
        prepared(runner)
    return worst


def milliseconds(run) -> list[float]:
    """Of steps, one after the other, after a few that warm up."""
    for _ in range(5):
        run()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(REPEATS + 1)]
    marks[0].record()
    for mark in marks[1:]:
        run()
        mark.record()
    torch.cuda.synchronize()
    return [one.elapsed_time(two) for one, two in zip(marks[:-1], marks[1:], strict=True)]


def keep(name: str, ranks: int, times: dict, predicted_speedup: float) -> None:
    """Record times and speedups."""
    medians = {label: statistics.median(of) for label, of in times.items()}
    around = {}
    for label, of in times.items():
        first, _, third = statistics.quantiles(of, n=4)
        around[label] = (third - first) / 2
        place = f"llm/tensor_parallel/{ranks}/{name}/{label}"
        record(place, medians[label] / 1e3, "s", around[label] / 1e3)
        print(f"{place} {1e3 * medians[label]:.1f} µs ± {1e3 * around[label]:.1f}", flush=True)
    value = medians["alone"] / medians["together"]
    spread = value * sum(around[label] / medians[label] for label in times)
    places = [f"llm/tensor_parallel/{ranks}/{name}/speedup"]
    if name == HEADLINE:
        places.append(f"llm/tensor_parallel/{ranks}/speedup")
    for place in places:
        record(place, value, "1", spread)
        print(f"{place} {value:.3f} ± {spread:.3f}, predicted {predicted_speedup:.3f}", flush=True)


def main() -> None:
    """Command line."""
    options = command_line(__doc__, 120).parse_args()
    report = Report(options.out.with_suffix(".json"), options.budget)
    gpus = torch.cuda.device_count() if has_gpu() else 0
    if gpus < 2:
        for ranks in (2, 4):
            config = parallel.HALF if ranks == 2 else parallel.QUARTER
            found = report.attempt(f"{ranks} ranks", parallel.errors, ranks, config)
            report.put("checks", f"{ranks} ranks: between them, and from one", found)
        print(report.entries["checks"], "two GPUs are needed to measure", sep="\n")
        return
    from course.kernels.language_model.serving import bench_parallel  # also where this is __main__

    comm.library()  # compiled here, and not by each rank
    left = report.left()
    work = partial(launch, bench_parallel.session, gpus, [left - AROUND], timeout=left)
    report.attempt("session", work)
    report.put("clock", "seconds left", round(report.left()))


if __name__ == "__main__":
    main()
