"""One model on all GPUs of a machine against one of them: a token's time, tensor parallel.

    python -m course.kernels.language_model.serving.bench_parallel --out parallel.json --budget 120

Beside parallel.json lies parallel.jsonl, the entries for assets/results. One token of one sequence
at position 1,000, bfloat16, random weights, by the plain form as one CUDA graph, on one GPU as on
several. What a model of both predicts is printed before
it is measured. Each rank measures; the slowest counts. Without two GPUs the ranks are checked in
one process, and nothing is measured.
"""

import statistics
from functools import partial

import torch

from course.kernels.fusion.racing import record
from course.kernels.language_model import problem
from course.kernels.language_model.plain import Plain
from course.kernels.language_model.problem import EIGHT_BILLION, ONE_BILLION, Config
from course.kernels.language_model.rightness import bound
from course.kernels.language_model.serving import parallel
from course.kernels.language_model.serving.parallel import PlainRank, predicted
from course.kernels.log import command_line
from course.kernels.many_gpus import communicator as comm
from course.kernels.many_gpus.launch import launch
from course.kernels.many_gpus.recording import Clock, slowest
from course.kernels.report import Report
from utils import has_gpu, timing

POSITION = 1000
LONGEST = 1040  # of a sequence
ROUNDS, REPEATS, WARM = 5, 20, 5
AROUND = 15  # seconds of a budget for the ranks to begin and to end
MODELS = {"one_billion": ONE_BILLION, "eight_billion": EIGHT_BILLION}
HEADLINE = "eight_billion"  # whose token takes long enough to be shared out


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
    group.barrier()
    alone = Plain(config, weights, *place(config))
    how = {"rank": group.rank, "ranks": group.size, "add_up": communicator.all_reduce}
    own = place(parallel.config_of(config, group.size))
    together = PlainRank(config, weights, *own, **how)
    apart = check(group, alone, together)
    communicator.check()
    say(group, f"{name}: logits are {apart:.2%} of the largest apart")
    runs = {"alone": captured(alone), "together": captured(together)}
    group.barrier()
    found = {label: [] for label in runs}
    found["alone"] += milliseconds(runs["alone"], alone)
    bandwidth = group.all_gather(timing.copy_bandwidth())[0]
    seconds = group.all_gather(statistics.median(found["alone"]) / 1e3)
    told = predicted(config, group.size, POSITION, bandwidth=bandwidth, alone=max(seconds))
    say(group, f"{name}, before it is measured: {told}")
    for _ in range(ROUNDS):
        for (label, run), model in zip(runs.items(), (alone, together), strict=True):
            group.barrier()
            found[label] += milliseconds(run, model)
    communicator.check()
    everyone = group.all_gather(found)
    if group.rank == 0:
        keep(name, group.size, {label: slowest(everyone, label) for label in runs}, told.speedup)


def place(config: Config) -> tuple:
    """(an empty cache, a token, its position) of one sequence."""
    cache = problem.cache(config, 1, LONGEST, torch.bfloat16, "cuda")
    numbers = {"dtype": torch.int32, "device": "cuda"}
    return cache, torch.full((1,), 7, **numbers), torch.zeros(1, **numbers)


def captured(plain: Plain):
    """A function that runs a step as a CUDA graph. All ranks capture at the same time."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        plain.step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plain.step()
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


def milliseconds(run, plain: Plain) -> list[float]:
    """Of steps, one after the other from POSITION on, after a few that warm up."""
    plain.position.fill_(POSITION)
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
