"""Which outputs of a notebook stay when it was run again: those whose work is still the same.

What is kept comes from the last commit, not from the file: there JupyterLab may have run each cell
on another machine.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat

from course.publish import stills
from course.recording.cells import marks
from course.recording.tidy import models_of
from course.recording.versions import Version, changed_files, git
from utils.files import ROOT, write_whole

#: What ran here: {notebook: {cell's id: mark of the work that it did}}. A changed cell may print
#: what it printed before, so its output alone does not show whether it ran.
RAN = Path("build") / "recorded.json"
REFERENCE = re.compile(r'"(?:IPY_MODEL_(\w+)|model_id": "(\w+))"')
#: Models that nobody refers to: they tie others together
TIES = "LinkModel", "DirectionalLinkModel"


@dataclass(frozen=True)
class Kept:
    """What became of a notebook's code cells: ids of those that have new outputs, in order.

    new: cells that had none. renewed: cells whose work changed. same: how many keep theirs.
    """

    new: tuple[str, ...]
    renewed: tuple[str, ...]
    same: int


class Committed:
    """A notebook as it was committed. since: the commit."""

    def __init__(self, path: Path, since: str = "HEAD", root: Path = ROOT):
        changed = changed_files(since, root)
        self.now = Version(None, changed, root)
        self.book = committed(path, since, root)
        cells = self.book.cells if self.book else []
        self.cells = {cell.id: cell for cell in cells if cell.get("execution_count")}
        before = marks(cells, Version(since, changed, root))
        self.marks = {id: mark for id, mark in before.items() if id in self.cells}

    def same(self, cells, renew=()) -> dict[str, str]:
        """{cell's id: id of the committed cell that did the same work}. renew: ids to leave out.

        A cell that was cut and pasted has another id: it is told by its work.
        """
        today = marks(cells, self.now)
        gone = {mark: id for id, mark in self.marks.items() if id not in today}
        found = {}
        for id, mark in today.items():
            before = id if self.marks.get(id) == mark else gone.pop(mark, None)
            if before and id not in renew:
                found[id] = before
        return found


def committed(path: Path, since: str, root: Path = ROOT):
    """The notebook in that commit, whatever number it had there; None where it was not."""
    try:
        name = path.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:  # a notebook from elsewhere
        return None
    text = git("show", f"{since}:{name}", folder=root)
    if text is None:
        folder, _, file = name.rpartition("/")
        names = (git("ls-tree", "--name-only", since, f"{folder}/", folder=root) or "").split("\n")
        key = re.sub(r"^\d\d_", "", file)
        again = [each for each in names if re.fullmatch(rf"{folder}/\d\d_{re.escape(key)}", each)]
        text = git("show", f"{since}:{again[0]}", folder=root) if again else None
    return nbformat.reads(text, as_version=4) if text else None


def keep(book, old: Committed, renew=()) -> Kept:
    """Give the notebook, which was run and tidied, the outputs that stay, in place.

    renew: ids of cells that are to have new ones in any case.
    """
    same = old.same(book.cells, renew)
    new, renewed = [], []
    for cell in book.cells:
        if cell.id in same:
            before = old.cells[same[cell.id]]
            cell.outputs = before.outputs
            cell.execution_count = before.execution_count
        elif cell.cell_type == "code":
            (renewed if cell.id in old.cells else new).append(cell.id)
    if same:
        merge_widgets(book, old.book, set(same.values()))
    return Kept(tuple(new), tuple(renewed), len(same))


def note_run(path: Path, root: Path = ROOT) -> None:
    """Note that all cells of a notebook of the project have run as they stand."""
    if not path.resolve().is_relative_to(root.resolve()):
        return
    now = Version(None, changed_files("HEAD", root), root)
    cells = nbformat.read(path, as_version=4).cells
    journal = root / RAN
    journal.parent.mkdir(exist_ok=True)
    ran = {**noted(root), path.name: marks(cells, now)}
    write_whole(journal, json.dumps(ran, indent=1) + "\n")


def noted(root: Path = ROOT) -> dict[str, dict[str, str]]:
    """What `note_run` noted of all notebooks; {} where the file is not there or not whole."""
    try:
        return json.loads((root / RAN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def stale(path: Path, since: str = "HEAD", root: Path = ROOT) -> list[str]:
    """Ids of cells whose kept outputs are not of the work that they do now, or that have not run.

    None in a notebook that is as committed; of one that was never committed, what has not run.
    """
    book = nbformat.read(path, as_version=4)
    old = Committed(path, since, root)
    same = old.same(book.cells)
    today, ran = marks(book.cells, old.now), noted(root).get(path.name, {})
    outdated = []
    for cell in book.cells:
        if cell.cell_type != "code" or cell.id in same:
            continue
        before = old.cells.get(cell.id)
        as_before = before is not None and before.outputs == cell.outputs != []
        has_run = ran.get(cell.id) == today[cell.id]
        if (as_before and not has_run) or cell.execution_count is None:
            outdated.append(cell.id)
    return outdated


# ---- widgets


def merge_widgets(book, old, kept: set[str]) -> None:
    """Give the notebook, in place, the models of the outputs that it keeps, and those it has."""
    before, after = models_of(old), models_of(book)
    staying = [cell for cell in old.cells if cell.id in kept]
    gone = [cell for cell in old.cells if cell.id not in kept]
    stay = reached(staying, before)
    without = reached(gone, before) - stay
    state = {id: model for id, model in before.items() if id not in without}
    fresh = {output_id(each) for each in book.cells for each in each.get("outputs", [])}
    state |= {id: after[id] for id in reached_from(fresh - set(before), after)}
    if state:
        empty = {stills.STATE: {"version_major": 2, "version_minor": 0}}
        saved = old.metadata.get("widgets") or book.metadata.get("widgets") or empty
        book.metadata["widgets"] = {**saved, stills.STATE: {**saved[stills.STATE], "state": state}}
    else:
        book.metadata.pop("widgets", None)


def output_id(output) -> str:
    """The model that an output shows, or ""."""
    return output.get("data", {}).get(stills.VIEW, {}).get("model_id", "")


def reached(cells, models: dict) -> set[str]:
    """The models that the outputs of some cells show, and all that those refer to."""
    return reached_from(
        {output_id(each) for cell in cells for each in cell.get("outputs", [])}, models
    )


def reached_from(ids: set[str], models: dict) -> set[str]:
    """The models of these ids, all that they refer to, and what ties them together."""
    found, waiting = set(), ids & models.keys()
    while waiting:
        found |= waiting
        waiting = {each for id in waiting for each in references(models[id])}
        waiting |= {
            id
            for id, model in models.items()
            if model["model_name"] in TIES and references(model) <= found
        }
        waiting = (waiting & models.keys()) - found
    return found


def references(model: dict) -> set[str]:
    """The ids of the models that a model refers to."""
    return {a or b for a, b in REFERENCE.findall(json.dumps(model))}
