"""What has been recorded of the convolutions on a GPU, as lines to print."""

from course.kernels.convolution.shapes import RACED
from utils import results

#: Kinds as they are recorded, and what they are called.
KINDS = {
    "fprop": "forward",
    "dgrad": "data gradient",
    "wgrad": "weights' gradient",
}


def title(label: str) -> str:
    """A raced shape in words."""
    conv = RACED[label]
    taps = f"{conv.side} × {conv.side}"
    return f"{conv.n} × {conv.c} channels, {conv.h}², {taps} → {conv.k}"


#: Our ways, as the bench calls them.
WAYS = "usual wide narrow narrow3 halo even stream_k few_filters".split()


def fastest(kind: str, label: str) -> float | None:
    """FLOP/s of the best of our ways."""
    found = [results.find(f"conv/{kind}/{label}/{way}/rate") for way in WAYS]
    return max((entry["value"] for entry in found if entry), default=None)


def line(kind: str, label: str, way: str = "") -> str:
    """One shape: our rate (of one way, or of the best), and its share of cuDNN's."""
    name = f"conv/{kind}/{label}"
    if way:
        ours = _value(f"{name}/{way}/rate")
        theirs = _value(f"{name}/cudnn/rate")
        share = ours / theirs if ours and theirs else None
    else:
        ours = fastest(kind, label)
        share = _value(f"{name}/share_of_cudnn")
    if not ours or not share:
        return f"{title(label)}: not recorded yet"
    rate = ours / 1e12
    return f"{title(label)}: {rate:.0f} TFLOP/s, {share:.0%} of cuDNN's speed"


def _value(name: str) -> float | None:
    entry = results.find(name)
    return entry["value"] if entry else None


def recall(
    kind: str,
    labels=tuple(RACED),
    way: str = "",
) -> None:
    """Print what is recorded of one kind of convolution."""
    known = [results.find(f"conv/{kind}/{label}/cudnn/rate") for label in labels]
    entry = next((entry for entry in known if entry), None)
    where = f"recorded on {entry['gpu']}, {entry['date'][:10]}" if entry else "not recorded yet"
    print(f"{KINDS[kind]}, {where}")
    for label in labels:
        print(" ", line(kind, label, way))


def ratio(name: str, words: str) -> None:
    """Print a recorded ratio: `words` holds {} where it stands."""
    entry = results.find(name)
    if entry is None:
        print("not recorded yet")
        return
    where = f"{entry['gpu']}, {entry['date'][:10]}"
    print(words.format(f"{entry['value']:.2f}"), f"({where})")
