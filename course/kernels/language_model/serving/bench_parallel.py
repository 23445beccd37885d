"""One model on all GPUs of a machine against one of them: a token's time, tensor parallel.

    python -m course.kernels.language_model.serving.bench_parallel --out parallel.json --budget 120

Beside parallel.json lies parallel.jsonl, the entries for assets/results. At position 1,000,
bfloat16, random weights, each as one CUDA graph on one GPU as on several: one token of one sequence
by the plain form; then, of the larger model, a step of 64 sequences by PyTorch's products and the
course's attention. What an estimate says of both is printed before it is measured. Each rank
measures; the slowest counts. Without two GPUs the ranks are checked in one process, and nothing is
measured.
"""

import statistics
from functools import partial

import torch

from course.kernels.bench.command import command_line
from course.kernels.bench.report import Report
from course.kernels.language_model import problem
from course.kernels.language_model.plain import Plain
from course.kernels.language_model.problem import EIGHT_BILLION, ONE_BILLION, Config
from course.kernels.language_model.rightness import bound
from course.kernels.language_model.serving import parallel
from course.kernels.language_model.serving.batch import BatchRunner
from course.kernels.language_model.serving.parallel import PlainRank, predicted
from course.kernels.language_model.serving.scheduler import BLOCK
from course.kernels.many_gpus import communicator as comm
from course.kernels.many_gpus.launch import launch
from course.kernels.many_gpus.recording import Clock, slowest
from utils import has_gpu, results, timing
from utils.occupancy import ceil_div

POSITION = 1000
LONGEST = 1040  # of a sequence
ROUNDS, REPEATS, WARM = 5, 20, 5
AROUND = 15  # seconds of a budget for the ranks to begin and to end
MODELS = {"one_billion": ONE_BILLION, "eight_billion": EIGHT_BILLION}
PEOPLE = 64
HEADLINE = "eight_billion"  # whose token takes long enough to be shared out


def session(group, seconds: float) -> None:
    """On every rank: each model, while there is time."""
    clock = Clock(seconds)
    heap = 4 * PEOPLE * MODELS[HEADLINE].vocabulary  # logits of 16 bits, twice
    communicator = comm.Communicator(group, heap).connect()
    for name, config in MODELS.items():
        if clock.agreed(group) < AROUND:
            say(group, f"{name}: no time left")
            break
        measure(group, communicator, name, config)
        torch.cuda.empty_cache()
    if clock.agreed(group) > AROUND:
        measure_many(group, communicator, HEADLINE, MODELS[HEADLINE])
    group.barrier()
    communicator.close()


def say(group, text: str) -> None:
    """Print on one rank only."""
    if group.rank == 0:
        print(text, flush=True)


def measure_many(group, communicator, name: str, config: Config) -> None:
    """Check a step of many sequences on all ranks, predict, and time it on one and on all."""
    weights = problem.weights(config, 0, torch.bfloat16, "cuda")
    table_length = ceil_div(LONGEST, BLOCK)
    how = {"blocks": PEOPLE * table_length, "longest": LONGEST}
    order = torch.randperm(how["blocks"], generator=torch.Generator().manual_seed(0))
    tables = order.reshape(PEOPLE, -1).int()
    group.barrier()
    alone = BatchRunner(config, weights, **how)
    one = stepping(alone, tables)
    group.barrier()
    how |= {"add_up": communicator.all_reduce, "empty": communicator.empty}
    together = parallel.runner_of(config, weights, group.rank, group.size, **how)
    all_of_them = stepping(together, tables)  # captured: all ranks launch at the same time
    communicator.check()
    apart = (together.rows(PEOPLE).logits.float() - alone.rows(PEOPLE).logits.float()).abs().max()
    apart = (apart / alone.rows(PEOPLE).logits.float().abs().max()).item()
    most = parallel.ROUNDED * (config.layers / 2) ** 0.5
    assert apart <= most, f"{apart:.2g} apart; roundings explain {most:.2g}"
    say(group, f"{name}, {PEOPLE} sequences: logits are {apart:.2%} of the largest apart")
    runs = {"alone": one, "together": all_of_them}
    race(group, communicator, f"{name}/{PEOPLE}", config, runs, PEOPLE)


def stepping(runner: BatchRunner, tables):
    """A function that runs a step of PEOPLE sequences at POSITION; it has run once."""
    rows = runner.rows(PEOPLE)
    tokens = 31 * torch.arange(PEOPLE)
    rows.fill(tokens, torch.full((PEOPLE,), POSITION), tables, torch.arange(PEOPLE))
    rows.run()
    return rows.run


def measure(group, communicator, name: str, config: Config) -> None:
    """Check a model on all ranks, predict, and time it on one and on all."""
    weights = problem.weights(config, 0, torch.bfloat16, "cuda")
    group.barrier()
    alone = Plain(config, weights, *place(config))
    how = {"rank": group.rank, "ranks": group.size, "add_up": communicator.all_reduce}
    own = place(parallel.config_of(config, group.size))
    together = PlainRank(config, weights, *own, **how)
    apart = check(group, alone, together)
    communicator.check()
    say(group, f"{name}: logits are {apart:.2%} of the largest apart")
    runs = {"alone": at_position(alone), "together": at_position(together)}
    race(group, communicator, name, config, runs, 1)


def race(group, communicator, name: str, config: Config, runs: dict, batch: int) -> None:
    """Predict from one GPU's time, then time both in turn; rank 0 records."""
    found = {label: [] for label in runs}
    group.barrier()
    found["alone"] += milliseconds(runs["alone"])
    bandwidth = group.all_gather(timing.copy_bandwidth())[0]
    seconds = max(group.all_gather(statistics.median(found["alone"]) / 1e3))
    how = {"batch": batch, "bandwidth": bandwidth, "alone": seconds}
    told = predicted(config, group.size, POSITION, **how)
    say(group, f"{name}, before it is measured: {told}")
    for _ in range(ROUNDS):
        for label, run in runs.items():
            group.barrier()
            found[label] += milliseconds(run)
    communicator.check()
    everyone = group.all_gather(found)
    if group.rank == 0:
        keep(name, group.size, {label: slowest(everyone, label) for label in runs}, told.speedup)


def place(config: Config) -> tuple:
    """(an empty cache, a token, its position) of one sequence."""
    cache = problem.cache(config, 1, LONGEST, torch.bfloat16, "cuda")
    numbers = {"dtype": torch.int32, "device": "cuda"}
    return cache, torch.full((1,), 7, **numbers), torch.zeros(1, **numbers)


def at_position(plain: Plain):
    """A function that runs a step at POSITION, as a CUDA graph that all ranks capture at once."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        plain.step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plain.step()
        plain.position.fill_(POSITION)
    plain.position.fill_(POSITION)
    return graph.replay


def check(group, alone: Plain, together: Plain, steps: int = 20) -> float:
    """Some tokens on one GPU and on all: how far the logits are apart, as a share of the largest.

    AssertionError where roundings do not explain it, or the ranks differ.
    """
    worst = 0.0
    for step in range(steps):
        alone.step()
        together.step()
        apart = (together.logits - alone.logits).abs().max() / alone.logits.abs().max()
        worst = max(worst, apart.item())
        sums = group.all_gather(together.logits.double().sum().item())
        assert len(set(sums)) == 1, f"step {step}: the ranks' logits differ"
        together.token.copy_(alone.token)  # a tie may fall either way
    most = bound(alone.config, torch.bfloat16)
    assert worst <= most, f"{worst:.2g} apart; roundings explain {most:.2g}"
    return worst


def milliseconds(run) -> list[float]:
    """Of steps, one after the other, after a few that warm up."""
    for _ in range(WARM):
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
        results.record(place, medians[label] / 1e3, "s", around[label] / 1e3)
        print(f"{place} {1e3 * medians[label]:.1f} µs ± {1e3 * around[label]:.1f}", flush=True)
    whole = f"llm/tensor_parallel/{ranks}/{name}/speedup"
    results.record(f"{whole}/predicted", predicted_speedup, "1")
    value = medians["alone"] / medians["together"]
    spread = value * sum(around[label] / medians[label] for label in times)
    places = [whole]
    if name == HEADLINE:
        places.append(f"llm/tensor_parallel/{ranks}/speedup")
    for place in places:
        results.record(place, value, "1", spread)
        print(f"{place} {value:.3f} ± {spread:.3f}, predicted {predicted_speedup:.3f}", flush=True)


def main() -> None:
    """Command line."""
    options = command_line(__doc__, 120).parse_args()
    report = Report(options.out.with_suffix(".json"), options.budget)
    gpus = torch.cuda.device_count() if has_gpu() else 0
    if gpus < 2:
        for ranks, config in ((2, parallel.HALF), (4, parallel.QUARTER)):
            for check in (parallel.plain_errors, parallel.errors):
                found = report.attempt(f"{ranks} ranks", check, ranks, config)
                report.put("checks", f"{check.__name__}, {ranks} ranks", found)
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
