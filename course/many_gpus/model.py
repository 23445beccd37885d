"""Time of a message: alpha + bytes / beta. Fitted to measurements, and what it predicts for more GPUs.

alpha is the time of a message of nothing (launch, trips over the link), beta the bytes a second of a
rank's link in one direction. What an algorithm sends, n ranks and a message of S bytes:

    one_shot          1 trip,  2 (n - 1) S bytes      (half of them flags)
    two_shot, push    2 trips, 2 (n - 1) / n S bytes
    ring              2 (n - 1) trips, 2 (n - 1) / n S bytes

Behind an NVSwitch every GPU reaches every other with its whole link, so beta is the same for any n.
"""

import json
from pathlib import Path

import numpy as np

from course.many_gpus.recording import Recording

TRIPS = {
    "one_shot": lambda n: 1,
    "two_shot": lambda n: 2,
    "push": lambda n: 2,
    "ring": lambda n: 2 * (n - 1),
}


def sent(algorithm: str, bytes: float, ranks: int) -> float:
    """Bytes that a rank sends for an all-reduce."""
    if algorithm == "one_shot":
        return 2 * (ranks - 1) * bytes
    return 2 * (ranks - 1) / ranks * bytes


def fit(points, algorithm: str, ranks: int) -> tuple[float, float, float]:
    """Fit time = launch + trips * trip + sent / beta to [(bytes, seconds)]; (alpha, beta, worst relative error).

    The errors that count are relative, since times lie over five orders of magnitude: weighted least
    squares. alpha is the launch and the trips of this many ranks.
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
    """Fit every algorithm in a results file, and write what it predicts for 4 and 8 GPUs beside it."""
    recording = Recording(path)
    trip = next(
        (e["value"] for e in recording.entries if "/peer_copy/latency/" in e["name"]), 1.5e-6
    )
    points = _points(recording.entries)
    fitted = {}
    for algorithm, best in points.items():
        if len(best) < 3:
            continue
        alpha, beta, worst = fit(sorted(best.items()), algorithm, ranks)
        fitted[algorithm] = alpha, beta
        prefix = f"many_gpus/model/{ranks}/{algorithm}"
        recording.add(f"{prefix}/alpha", alpha, "s", worst_error=worst)
        recording.add(f"{prefix}/beta", beta, "B/s")
    for more in (4, 8):
        if more > ranks:
            _predict_all(recording, fitted, ranks, more, trip)


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
            name = f"many_gpus/{more}/all_reduce/{bytes}/predicted"
            recording.entries.append(
                {"name": name, "value": times[best], "unit": "s", "spread": 0, "algorithm": best}
            )
    recording._write()


def _points(entries) -> dict[str, dict[int, float]]:
    """The best time of every algorithm at every size: {algorithm: {bytes: seconds}}."""
    points = {}
    for entry in entries:
        words = entry["name"].split("/")
        if words[:2] != ["many_gpus", "all_reduce"] or "sweep" not in words or "bf16" in words:
            continue
        bytes, algorithm = int(words[2]), words[4]
        best = points.setdefault(algorithm, {})
        best[bytes] = min(entry["value"], best.get(bytes, float("inf")))
    return points


if __name__ == "__main__":
    import sys

    print(json.dumps(_points(json.loads(Path(sys.argv[1]).read_text())), indent=1))
