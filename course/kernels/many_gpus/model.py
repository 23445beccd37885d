"""Time of a message: alpha + bytes / beta, fitted to measurements, and predictions for more GPUs.

alpha is the time of a message of nothing (launch, trips over the link), beta the bytes a second of
a rank's link in one direction. What an algorithm sends, n ranks and a message of S bytes:

    one_shot          1 trip,  2 (n - 1) S bytes      (half of them flags)
    pull              2 trips, (n - 1) S bytes
    two_shot, push    2 trips, 2 (n - 1) / n S bytes
    ring              2 (n - 1) trips, 2 (n - 1) / n S bytes

Behind an NVSwitch every GPU reaches every other with its whole link, so beta is the same for any n.
"""

from pathlib import Path

import numpy as np

from course.kernels.many_gpus.recording import Recording

TRIPS = {
    "one_shot": lambda n: 1,
    "pull": lambda n: 2,
    "two_shot": lambda n: 2,
    "push": lambda n: 2,
    "ring": lambda n: 2 * (n - 1),
}


def sent(algorithm: str, bytes: float, ranks: int) -> float:
    """Bytes that a rank sends for an all-reduce."""
    if algorithm == "one_shot":
        return 2 * (ranks - 1) * bytes
    if algorithm == "pull":
        return (ranks - 1) * bytes
    return 2 * (ranks - 1) / ranks * bytes


def fit(points, algorithm: str, ranks: int) -> tuple[float, float, float]:
    """Fit alpha + sent / beta to [(bytes, seconds)]: alpha, beta, the worst relative error.

    The errors that count are relative, since times lie over five orders of magnitude: weighted
    least squares. alpha is the launch and the trips of this many ranks.
    """
    bytes = np.array([b for b, _ in points], float)
    seconds = np.array([s for _, s in points], float)
    columns = np.stack([np.ones_like(bytes), sent(algorithm, 1.0, ranks) * bytes], axis=1)
    (alpha, inverse), *_ = np.linalg.lstsq(
        columns / seconds[:, None], np.ones_like(seconds), rcond=None
    )
    worst = float(np.max(np.abs(columns @ [alpha, inverse] / seconds - 1)))
    return float(alpha), float(1 / inverse), worst


def predict(
    algorithm: str,
    bytes: float,
    ranks: int,
    alpha: float,
    beta: float,
    fitted_ranks: int,
    trip: float,
):
    """Seconds with another number of ranks: the launch stays, trips and bytes are counted anew."""
    more_trips = TRIPS[algorithm](ranks) - TRIPS[algorithm](fitted_ranks)
    return alpha + more_trips * trip + sent(algorithm, bytes, ranks) / beta


def add_to(path: str | Path, ranks: int) -> None:
    """Fit every algorithm in a results file, and write the predictions for 4 and 8 GPUs to it."""
    recording = Recording(path, ranks=ranks)
    latencies = [e["value"] for e in recording.entries if "/peer_copy/latency/" in e["name"]]
    trip = max(latencies, default=1e-6)
    fitted = {}
    for algorithm, best in _points(recording.entries, ranks).items():
        if len(best) < 3:
            continue
        alpha, beta, worst = fit(sorted(best.items()), algorithm, ranks)
        fitted[algorithm] = alpha, beta
        recording.add(f"many_gpus/model/{algorithm}/alpha", alpha, "s", worst_error=worst)
        recording.add(f"many_gpus/model/{algorithm}/beta", beta, "B/s", worst_error=worst)
    for more in (4, 8):
        if more > ranks:
            _predict_all(recording, fitted, ranks, more, trip)
            _predict_training(recording, fitted, ranks, more)
    recording.write()


def predict_step(alone: float, together: float, ranks: int, more: int, beta: float) -> float:
    """Seconds of a data-parallel step on `more` GPUs, from one GPU's and from that on `ranks`.

    What is added to one GPU's step on `ranks` GPUs is trips and launches, which stay, and the words
    at the end of the step, which grow with the number of peers. The first linear layer's words
    travel beside the convolutions' backward pass as long as they take less time.
    """
    words_at_end = 32 * (
        160 + (12 + 144) * 32
    )  # slots of trainer.cu's update without fc1, 32 bytes each
    return together + (more - ranks) * words_at_end / beta


def _predict_training(recording, fitted, ranks, more):
    """Scaling at the batches that were measured."""
    value = {entry["name"]: entry["value"] for entry in recording.entries if "value" in entry}
    if not fitted:
        return
    beta = max(beta for _, beta in fitted.values())
    prefix = "many_gpus/ddp" if ranks == 2 else f"many_gpus/{ranks}/ddp"
    for batch in (256, 1024, 4096):
        alone = value.get(f"{prefix}/{batch}/step/alone")
        together = value.get(f"{prefix}/{batch}/step/shared_statistics/bucket")
        if alone and together:
            step = predict_step(alone, together, ranks, more, beta)
            name = f"{more}/ddp/{batch}/scaling/predicted"
            recording.predict(name, more * alone / step, "1")


def _predict_all(recording, fitted, ranks, more, trip):
    """The fastest algorithm for every size, by the model."""
    for exponent in range(3, 31):
        bytes = 1 << exponent
        times = {
            algorithm: predict(algorithm, bytes, more, *coefficients, ranks, trip)
            for algorithm, coefficients in fitted.items()
            if algorithm != "one_shot" or bytes <= 2 << 20
        }
        if times:
            best = min(times, key=times.get)
            name = f"{more}/all_reduce/{bytes}/predicted"
            recording.predict(name, times[best], "s", algorithm=best)


def _points(entries, ranks) -> dict[str, dict[int, float]]:
    """The best time of every algorithm at every size: {algorithm: {bytes: seconds}}."""
    prefix = ["many_gpus", "all_reduce"] if ranks == 2 else ["many_gpus", str(ranks), "all_reduce"]
    points = {}
    for entry in entries:
        words = entry["name"].split("/")
        rest = words[len(prefix) :]
        if words[: len(prefix)] != prefix or len(rest) < 3 or rest[1] != "sweep":
            continue
        best = points.setdefault(rest[2], {})
        bytes = int(rest[0])
        best[bytes] = min(entry["value"], best.get(bytes, float("inf")))
    return points
