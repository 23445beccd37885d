"""Time of a message: alpha + bytes / beta, fitted to measurements, and predictions for more GPUs.

alpha is the time of a message of nothing (launch, trips over the link), beta the bytes a second of
a rank's link in one direction. What an algorithm sends, n ranks and a message of S bytes:

    one_shot          1 trip,  2 (n - 1) S bytes      (half of them flags)
    pull              2 trips, (n - 1) S bytes
    two_shot, push    2 trips, 2 (n - 1) / n S bytes
    ring              2 (n - 1) trips, 2 (n - 1) / n S bytes

Behind an NVSwitch every GPU reaches every other with its whole link, so beta is the same for any n.
How alpha grows must be measured: fitted on two numbers of GPUs, each peer more adds the same. From
one number alone it can only be assumed that a trip more costs what a word's way does.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from course.kernels.many_gpus import choices
from course.kernels.many_gpus.recording import Recording

TRIPS = {
    "one_shot": lambda n: 1,
    "pull": lambda n: 2,
    "two_shot": lambda n: 2,
    "push": lambda n: 2,
    "ring": lambda n: 2 * (n - 1),
}
TRIP = 1e-6  # seconds of a word's way, where none is measured
FEWEST = 3  # points of a fit
ONE_SHOT_MOST = 2 << 20  # bytes that one shot takes
#: What the update without fc1 sends to each peer: its slots in trainer.cu, 32 bytes each.
WORDS_AT_END = 32 * (160 + (12 + 144) * 32)


@dataclass(frozen=True)
class Line:
    """Seconds of an algorithm with so many ranks: alpha (seconds) + sent / beta (bytes a second).

    worst: the largest relative error of a point that the line was fitted to.
    """

    algorithm: str
    ranks: int
    alpha: float
    beta: float
    worst: float = 0.0

    def seconds(self, bytes: float) -> float:
        """Seconds of a message with as many ranks as the line was fitted to."""
        return self.alpha + sent(self.algorithm, bytes, self.ranks) / self.beta


def sent(algorithm: str, bytes: float, ranks: int) -> float:
    """Bytes that a rank sends for an all-reduce."""
    if algorithm == "one_shot":
        return 2 * (ranks - 1) * bytes
    if algorithm == "pull":
        return (ranks - 1) * bytes
    return 2 * (ranks - 1) / ranks * bytes


def fit(
    times: dict[int, float],
    algorithm: str,
    ranks: int,
) -> Line:
    """The line that fits {bytes: seconds} best.

    The errors that count are relative, since times lie over five orders of magnitude: weighted
    least squares. alpha is the launch and the trips of this many ranks.
    """
    bytes = np.array(list(times), float)
    seconds = np.array(list(times.values()), float)
    on_link = sent(algorithm, 1.0, ranks) * bytes
    columns = np.stack([np.ones_like(bytes), on_link], axis=1)
    weighted = columns / seconds[:, None]
    ones = np.ones_like(seconds)
    (alpha, inverse), *_ = np.linalg.lstsq(
        weighted,
        ones,
        rcond=None,
    )
    errors = columns @ [alpha, inverse] / seconds - 1
    worst = float(np.max(np.abs(errors)))
    return Line(
        algorithm,
        ranks,
        float(alpha),
        float(1 / inverse),
        worst,
    )


def for_a_peer(fewer: Line, more: Line) -> float:
    """Seconds that each peer adds to alpha, from two fits of one algorithm."""
    return (more.alpha - fewer.alpha) / (more.ranks - fewer.ranks)


def with_more(
    line: Line,
    ranks: int,
    fewer: Line | None = None,
    trip: float = TRIP,
) -> Line:
    """The line for more ranks: beta stays, and alpha grows.

    fewer: the fit with fewer ranks, from which it is known how much a peer adds. Without it the
    launch stays, and each trip more costs `trip` seconds.
    """
    if fewer:
        added = (ranks - line.ranks) * for_a_peer(fewer, line)
    else:
        trips = TRIPS[line.algorithm]
        added = (trips(ranks) - trips(line.ranks)) * trip
    return Line(line.algorithm, ranks, line.alpha + added, line.beta)


def predict_step(
    together: float,
    ranks: int,
    more: int,
    peer: float,
) -> float:
    """Seconds of a data-parallel step on `more` GPUs, from that on `ranks` and a peer's share.

    What is added to one GPU's step is launches and trips, which stay, and what grows with the
    peers: `peer` seconds each, as `cost_of_a_peer` finds.
    """
    return together + (more - ranks) * peer


def cost_of_a_peer(fewer: tuple, more: tuple) -> float:
    """Seconds that a peer adds to a step, from (ranks, seconds alone, seconds together) twice."""
    (few, alone, together), (many, alone_of_many, together_of_many) = fewer, more
    return (together_of_many - alone_of_many - together + alone) / (many - few)


# ---- the results file ----------------------------------------------------------------------------


def add_to(path: str | Path, ranks: int) -> None:
    """Fit every algorithm in a results file, and write the predictions for 4 and 8 GPUs to it.

    ranks: the most GPUs that it has sweeps of.
    """
    lines = fits(Recording(path).entries)
    for number, fitted in lines.items():
        recording = Recording(
            path,
            ranks=number,
            gpus=ranks,
        )
        for name, line in fitted.items():
            model = f"many_gpus/model/{name}"
            recording.add(
                f"{model}/alpha",
                line.alpha,
                "s",
                worst_error=line.worst,
            )
            recording.add(
                f"{model}/beta",
                line.beta,
                "B/s",
                worst_error=line.worst,
            )
    recording = Recording(path, ranks=ranks)
    for more in (4, 8):
        if more > ranks and ranks in lines:
            _predict_all(recording, lines, ranks, more)
            _predict_training(recording, lines[ranks], ranks, more)
    recording.write()


def fits(entries) -> dict[int, dict[str, Line]]:
    """{ranks: {algorithm: its line}} of a recording's sweeps."""
    lines = {}
    for ranks, sizes in choices.sweeps(entries).items():
        times = {}
        for bytes, variants in sorted(sizes.items()):
            for algorithm, seconds in choices.best_of_algorithms(variants).items():
                times.setdefault(algorithm, {})[bytes] = seconds
        lines[ranks] = {
            name: fit(points, name, ranks)
            for name, points in times.items()
            if len(points) >= FEWEST
        }
    return lines


def _fewer(found: dict[int, object], ranks: int) -> int | None:
    """The next smaller number of GPUs of which something is found."""
    return max((number for number in found if number < ranks), default=None)


def _predict_all(recording, lines, ranks, more):
    """The fastest algorithm for every size, by the model."""
    latencies = [e["value"] for e in recording.entries if "/peer_copy/latency/" in e["name"]]
    trip = max(latencies, default=TRIP)
    fewer = lines.get(_fewer(lines, ranks), {})
    grown = []
    for name, line in lines[ranks].items():
        grown.append(with_more(line, more, fewer.get(name), trip))
    for exponent in range(3, 31):
        bytes = 1 << exponent
        able = [x for x in grown if x.algorithm != "one_shot" or bytes <= ONE_SHOT_MOST]
        if able:
            best = min(able, key=lambda line: line.seconds(bytes))
            name = f"{more}/all_reduce/{bytes}/predicted"
            recording.predict(
                name,
                best.seconds(bytes),
                "s",
                algorithm=best.algorithm,
            )


def _predict_training(recording, lines, ranks, more):
    """Scaling at the batches that were measured."""
    values = {entry["name"]: entry["value"] for entry in recording.entries if "value" in entry}
    for batch in (256, 1024, 4096):
        steps = _steps(values, batch)
        if not lines or ranks not in steps:
            continue
        alone, together = steps[ranks]
        peer = WORDS_AT_END / max(line.beta for line in lines.values())
        fewer = _fewer(steps, ranks)
        if fewer:
            peer = cost_of_a_peer((fewer, *steps[fewer]), (ranks, alone, together))
        step = predict_step(together, ranks, more, peer)
        recording.predict(f"{more}/ddp/{batch}/scaling/predicted", more * alone / step, "1")


def _steps(values: dict[str, float], batch: int) -> dict[int, tuple[float, float]]:
    """{ranks: (seconds of a step alone, with all)} of what was measured."""
    steps = {}
    prefixes = {"many_gpus": 2}
    for ranks in (2, 4, 8):
        prefixes[f"many_gpus/{ranks}"] = ranks
    for prefix, ranks in prefixes.items():
        name = f"{prefix}/ddp/{batch}/step"
        alone = values.get(f"{name}/alone")
        together = values.get(f"{name}/shared_statistics/bucket")
        if alone and together:
            steps[ranks] = alone, together
    return steps
