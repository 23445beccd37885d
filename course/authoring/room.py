"""How much room a chapter has: the minutes that are left, and what folding a section would gain."""

import copy
from dataclasses import dataclass

from course.chapters import Chapter
from course.publish import minutes
from course.publish.folded import FOLDED, HEADING, folds
from course.recording.cells import files_written, statements_of

OFFERED = 5  # sections
LEAST = 1  # minutes that are worth folding a section


def of(chapter: Chapter, cells, needs: float = 0) -> list[str]:
    """What to say of a chapter's minutes before something of `needs` minutes is added, in lines."""
    took = minutes.minutes_of(cells).all
    free = minutes.WHOLE - took
    first = f"{chapter.key} takes {took:.1f} of {minutes.WHOLE} minutes"
    if needs:
        first += f", and what you add about {needs:g} more"
    if needs <= free:
        return [f"{first}: there is room."]
    return [f"{first}: {needs - free:.1f} too many.", *offers(cells)]


def offers(cells) -> list[str]:
    """Sections that could be folded, and what each of them would gain, in lines."""
    parts = foldable(cells)[:OFFERED]
    if not parts:
        return ["No section without an exercise is left to fold: shorten one, or split it."]
    lines = ["Folding a section, as *Going further: ...*, gains:"]
    for part in parts:
        needed = f"; what follows needs {', '.join(part.needed)}" if part.needed else ""
        lines.append(f"  {part.gain:4.1f} minutes: {part.title} (cell {part.id}{needed})")
    return lines


@dataclass(frozen=True)
class Part:
    """What stands under a heading. gain: minutes. needed: what it makes that later cells use."""

    title: str
    id: str
    gain: float
    needed: tuple[str, ...]


def foldable(cells) -> list[Part]:
    """The parts under headings of level 3, the best to fold first: those that nothing needs.

    Parts in which the learner writes something are left out, and so are those of a minute or less.
    """
    whole = minutes.minutes_of(cells).all
    under = folds(cells)
    found = []
    for place, cell in enumerate(cells):
        heading = HEADING.match(cell.source) if cell.cell_type == "markdown" else None
        if not heading or len(heading[1]) != 3 or under[place] is not None:
            continue
        less = [*cells[:place], folded(cell), *cells[place + 1 :]]
        end = place + folds(less).count(place)
        gain = whole - minutes.minutes_of(less).all
        if gain > LEAST and not any(map(minutes.asks_to_write, cells[place:end])):
            title = cell.source.splitlines()[0].strip("# ")
            found.append(Part(title, cell.id, gain, needed(cells[place:end], cells[end:])))
    return sorted(found, key=lambda part: (bool(part.needed), -part.gain))


def needed(part, later) -> tuple[str, ...]:
    """Names that a part sets, and files that it writes, which later cells use."""
    statements = [each for cell in code(part) for each in statements_of(cell.source)]
    sets = {name for each in statements for name in each.sets}
    used = {
        name
        for cell in code(later)
        for each in statements_of(cell.source)
        for name in each.uses | each.later
    }
    text = "\n".join(cell.source for cell in later)
    files = {path for path in files_written(part) if path in text}
    return tuple(sorted(sets & used | files))


def code(cells) -> list:
    """The code cells."""
    return [cell for cell in cells if cell.cell_type == "code"]


def folded(cell):
    """A copy of a heading's cell, folded."""
    new = copy.deepcopy(cell)
    new.metadata[FOLDED] = True
    return new


def problems(chapter: Chapter, cells) -> list[str]:
    """What a chapter's minutes ask of a person: what the total hides that the chapter states."""
    took = minutes.minutes_of(cells)
    found = []
    if round(took.all) > minutes.WHOLE:
        found.append("\n".join(of(chapter, cells)))
    longest = max(took.stretches)
    if round(longest) > minutes.LONGEST:
        found.append(
            f"{longest:.1f} minutes pass between two things to write, {minutes.LONGEST} at most: "
            "an exercise or a line to change goes in between"
        )
    return found
