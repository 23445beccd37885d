"""What the races of a grid of shapes come to, and a call that is timed as one CUDA graph."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from course.kernels.bench.report import Report
from utils import has_gpu


@dataclass(frozen=True)
class Summary:
    """The geometric mean of the speedups over the best rival, and each shape's."""

    mean: float
    ratios: dict

    @property
    def worst(self):
        return min(self.ratios, key=self.ratios.get)

    @property
    def best(self):
        return max(self.ratios, key=self.ratios.get)


def summary(ratios: dict) -> Summary:
    """Of shape -> speedup over the best rival."""
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    return Summary(mean, ratios)


def record(report: Report, found: dict[str, Summary], sides: Iterable[str]) -> None:
    """Beginning of a metric's name -> Summary; the worst and the best shape by these `sides`.

    "Over best" is over the best rival, in every name.
    """
    for start, told in found.items():
        report.record(f"{start}/geomean_over_best", told.mean)
        for which, shape in (("worst", told.worst), ("greatest", told.best)):
            name = f"{start}/{which}_over_best"
            report.record(name, told.ratios[shape])
            for side in sides:
                report.record(f"{name}/{side}", getattr(shape, side))
        report.record(f"{start}/shapes", len(told.ratios))


def replayed(run: Callable[[], object]) -> Callable[[], object]:
    """What replays a function's kernels as one CUDA graph, where there is a GPU."""
    if not has_gpu():
        return run
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        run()
        torch.cuda.synchronize()
        # other threads may go on compiling meanwhile
        graph.capture_begin(capture_error_mode="thread_local")
        results = run()
        graph.capture_end()
    torch.cuda.synchronize()

    def replay():
        graph.replay()
        return results

    return replay
