"""What the grid of products has recorded, told in a table."""

from course.kernels.matmul.forms import TYPES
from utils import results

SETS = {
    "": "fitted by",
    "/held_out": "drawn",
}
SIDES = ("batch", "m", "n", "k")


def told(folder=None) -> str:
    """A line for each type and set of shapes: speed beside cuBLAS, on average and at worst.

    folder: of the results files, the project's own unless given.
    """
    lines = []
    whose = ""
    for kind in TYPES:
        for suffix, name in SETS.items():
            line = _line(f"matmul/grid/{kind}{suffix}", folder)
            if line:
                entry, text = line
                whose = f"{entry['gpu']}, {entry['date'][:10]}"
                lines.append(f"{kind:5} {name:9} {text}")
    if not lines:
        return "nothing is recorded yet"
    head = f"speed of ours, cuBLAS's best mode being 1; {whose}"
    return "\n".join([head, f"{'shapes':18} mean  worst", *lines])


def _line(start: str, folder) -> tuple[dict, str] | None:
    names = "geomean_over_best", "worst_over_best", "shapes"
    sides = [f"worst_over_best/{side}" for side in SIDES]
    found = [results.find(f"{start}/{name}", folder=folder) for name in (*names, *sides)]
    if not all(found):
        return None
    mean, worst, shapes, batch, *sides = [entry["value"] for entry in found]
    times = f"{batch:.0f} × " if batch > 1 else ""
    where = times + " × ".join(f"{side:.0f}" for side in sides)
    return found[0], f"{shapes:2.0f}  {mean:5.2f}  {worst:5.2f}  at {where}"
