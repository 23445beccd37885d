"""What has been recorded of the convolutions on a GPU, as lines to print."""

from course.kernels.convolution.shapes import RACED
from utils import results

#: Kinds as they are recorded, and what they are called.
KINDS = {"fprop": "forward", "dgrad": "data gradient", "wgrad": "weights' gradient"}


def title(label: str) -> str:
    """A raced shape in words."""
    conv = RACED[label]
    taps = f"{conv.side} × {conv.side}"
    return f"{conv.n} × {conv.c} channels, {conv.h}², {taps} → {conv.k}"


def line(kind: str, label: str, way: str = "") -> str:
    """One shape: cuDNN's rate, ours (of one way, or the best), and the share."""
    name = f"conv/{kind}/{label}"
    theirs = results.find(f"{name}/cudnn/rate")
    ours = results.find(f"{name}/{way}/rate") if way else results.find(f"{name}/share_of_cudnn")
    if not theirs or not ours:
        return f"{title(label)}: not recorded yet"
    share = ours["value"] / theirs["value"] if way else ours["value"]
    rate = share * theirs["value"] / 1e12
    speeds = f"{rate:.0f} TFLOP/s, cuDNN {theirs['value'] / 1e12:.0f}: {share:.0%}"
    return f"{title(label)}: {speeds}"


def show(kind: str, labels=tuple(RACED), way: str = "") -> None:
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
