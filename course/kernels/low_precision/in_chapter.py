"""What the chapter shows of the races: a small table, measured now or recorded."""

from dataclasses import dataclass

from course.kernels.fusion import in_chapter, records
from utils import results

MISSING = "–"


@dataclass(frozen=True)
class Row:
    """A row of a table: its words, and the names of its results, one a column."""

    words: str
    names: tuple[str, ...]


def race(part: str, heads: tuple[str, ...], rows: list[Row], seconds: int = 60) -> None:
    """Race a part of the bench here, and print a table of what was found.

    Elsewhere, and where the race fails: of what is recorded.
    """
    found = in_chapter.run(part, seconds) if in_chapter.able() else {}
    show(heads, rows, found)


def recorded(heads: tuple[str, ...], rows: list[Row]) -> None:
    """Print a table of recorded results."""
    show(heads, rows, {})


def show(heads: tuple[str, ...], rows: list[Row], found: dict) -> None:
    """A line for each row. found: {name: (value, unit)} that was measured just now."""
    first = max(len(row.words) for row in rows)
    wide = [max(12, len(head)) for head in heads]
    print(" " * first, *(head.rjust(w) for head, w in zip(heads, wide, strict=True)))
    for row in rows:
        cells = (in_words(name, found).rjust(w) for name, w in zip(row.names, wide, strict=True))
        print(row.words.ljust(first), *cells)
    print(source_of([name for row in rows for name in row.names], found))


def in_words(name: str, found: dict) -> str:
    """A result as the table shows it: a ratio as "3.9 times", a share in percent."""
    entry = results.find(name)
    if name not in found and entry is None:
        return MISSING
    value, unit = found.get(name) or (entry["value"], entry["unit"])
    if "speedup" in name:
        return f"{value:.2f} times"
    return records.in_words(name, value, unit)


def source_of(names: list[str], found: dict) -> str:
    """Whose numbers these are."""
    entries = [results.find(name) for name in names if name not in found]
    known = {f"{each['gpu']}, {each['date'][:10]}" for each in entries if each}
    now = ["measured now"] if found else []
    return f"({'; '.join([*now, *sorted(known)]) or 'not recorded yet'})"
