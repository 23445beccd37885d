"""trace(): runs a kernel once and returns a Trace, which counts, reports and draws."""

import html
import inspect
import linecache
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from . import counts
from . import races as race_search
from .cuda_c import is_cuda_c, record_cuda_c
from .loops import in_different_rounds
from .record import SYNCWARP, Recording, TraceError, cropped, record
from .triton import is_triton, record_triton

if TYPE_CHECKING:
    from .player import Player
    from .steps import Steps

#: Threads and events of one trace unless the caller says otherwise, and seconds before it is
#: stopped.
MAX_THREADS = 16_384
MAX_EVENTS = 2_000_000
SECONDS = 30
CODE_WIDTH = 52
Line = int | str  # a line's number, or a piece of its text
Row = TypeVar("Row", counts.Coalescing, counts.Banks)
COLUMNS = ("line", "code", "lanes", "a warp's request")
CELL, CODE = (
    "text-align:left;padding:1px 8px;vertical-align:top;",
    "font-family:monospace;white-space:pre-wrap",
)
PROBLEM = "border-left:4px solid #B03A00;padding:2px 8px;margin:4px 0"
NO_STATEMENTS = "Of this kernel accesses and barriers are recorded, no statements and no branches."
NO_PROBLEMS = (
    "No races, no skipped barriers, no wrong indices, no reads of unwritten shared "
    "memory in this run."
)


def trace(
    kernel: Any,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    *args: Any,
    shared_bytes: int = 0,
    max_threads: int = MAX_THREADS,
    limit: int = MAX_EVENTS,
    seconds: float = SECONDS,
    **named: Any,
) -> "Trace":
    """Run a kernel once, on the CPU; record each access, barrier, atomic and branch.

    kernel: a @cuda.jit function, on a machine with a GPU too; or, on a machine without one, a
        CUDA C kernel of `cuda_c.load` or a Triton kernel, of which statements and branches are not
        seen.
    grid, block: as in kernel[grid, block]; of a Triton kernel `block` is the number of lanes to
        which the elements of a program are dealt, in turns.
    args: as the launch takes them: NumPy arrays, device arrays, torch tensors, numbers, tuples of
        these.
        The kernel works on copies; what it made of them is in `Trace.results`, by argument name.
    named: a Triton launch's named arguments (BLOCK=64).
    shared_bytes: of dynamic shared memory. limit: events (accesses, statements, branches) that stop
        it.

    A kernel that loses a thread at a barrier ends there, and one that leaves its arrays goes on:
    both are in the report. Raises TraceError for what cannot be traced (no Numba kernel, too many
    threads), TooManyEvents or KernelTimeout for a loop that does not end, and the kernel's own
    error if it has another one.
    """
    if is_cuda_c(kernel):
        return Trace(
            record_cuda_c(
                kernel, grid, block, args, shared_bytes, max_threads=max_threads, limit=limit
            )
        )
    if is_triton(kernel):
        limits = {"max_threads": max_threads, "limit": limit}
        return Trace(record_triton(kernel, grid, block, args, named, **limits))
    if named:
        raise TraceError(f"a launch has no argument {', '.join(named)}")
    return Trace(
        record(
            kernel,
            grid,
            block,
            args,
            shared_bytes,
            max_threads=max_threads,
            limit=limit,
            seconds=seconds,
        )
    )


class Trace:
    """What a launch did.

    Lists, each entry with its source line: `coalescing`, `banks`, `contention`, `others`,
    `activity`, `branches`, `barriers`, `races`, `mistakes`. `error` is what stopped the launch, or
    None; `results` holds the arguments' arrays after it. Where a method takes `line`, it is a line
    number or a piece of its text.
    """

    def __init__(self, recording: Recording) -> None:
        self.name = recording.name
        self.grid = recording.grid
        self.block = recording.block
        self.results = recording.results
        self.error = recording.error
        self.events = counts.Events(recording)
        self._function = recording.function
        self._source = recording.source
        self.unit = recording.unit
        self._can_race = recording.can_race
        self._outside = recording.recorder.outside
        self.blocks = math.prod(self.grid)
        self.threads_a_block = math.prod(self.block)

    @cached_property
    def coalescing(self) -> list[counts.Coalescing]:
        """Global accesses: a Coalescing for each line, array and operation."""
        return counts.coalescing(self.events)

    @cached_property
    def banks(self) -> list[counts.Banks]:
        """Shared accesses: a Banks for each line, array and operation."""
        return counts.banks(self.events)

    @cached_property
    def contention(self) -> list[counts.Contention]:
        """Atomics: a Contention for each line and array."""
        return counts.contention(self.events)

    @cached_property
    def others(self) -> list[counts.Other]:
        """Local and constant memory: an Other for each line, array and operation."""
        return counts.others(self.events)

    @cached_property
    def activity(self) -> list[counts.Activity]:
        """Active lanes: an Activity for each line."""
        return counts.activity(self.events)

    @cached_property
    def branches(self) -> list[counts.Branch]:
        """Decisions: a Branch for each line that has one."""
        return counts.branches(self.events)

    @cached_property
    def barriers(self) -> list[counts.Barrier]:
        """Block-wide barriers: a Barrier for each line that has one and was reached."""
        return counts.barriers(self.events, self.blocks, self.threads_a_block)

    @cached_property
    def races(self) -> list[race_search.Race]:
        """A Race for each pair of lines that race."""
        return race_search.races(self.events) if self._can_race else []

    @cached_property
    def mistakes(self) -> list[counts.Mistake]:
        """Wrong indices and reads of the unwritten: a Mistake for each line, array and kind."""
        return counts.mistakes(self.events, self._outside)

    # ---- numbers

    def efficiency(
        self, array: str | None = None, operation: str | None = None, line: Line | None = None
    ) -> float:
        """Coalescing efficiency in percent, of all global accesses or of those chosen."""
        rows = self.rows(self.coalescing, array, operation, line)
        fewest = sum(row.fewest for row in rows)
        return 100 * fewest / sum(row.sectors for row in rows)

    def sectors(
        self, array: str | None = None, operation: str | None = None, line: Line | None = None
    ) -> int:
        """32-byte sectors that global accesses move."""
        return sum(row.sectors for row in self.rows(self.coalescing, array, operation, line))

    def ways(
        self, array: str | None = None, operation: str | None = None, line: Line | None = None
    ) -> int:
        """The worst bank conflict: n-way, 1 for none."""
        return max(row.ways for row in self.rows(self.banks, array, operation, line))

    def conflicts(
        self, array: str | None = None, operation: str | None = None, line: Line | None = None
    ) -> int:
        """Passes that bank conflicts add."""
        return sum(row.conflicts for row in self.rows(self.banks, array, operation, line))

    def rows(
        self,
        rows: list[Row],
        array: str | None = None,
        operation: str | None = None,
        line: Line | None = None,
    ) -> list[Row]:
        """Those of `rows` (coalescing, banks ...) that match; TraceError names what there is."""
        numbers = None if line is None else self.lines_with(line)
        matching = [
            row
            for row in rows
            if array in (None, row.array)
            and operation in (None, row.operation)
            and (numbers is None or row.line in numbers)
        ]
        if matching:
            return matching
        wanted = {"array": array, "operation": operation, "line": line}
        words = [f"{name} {value!r}" for name, value in wanted.items() if value is not None]
        asked = f": {', '.join(words)}" if words else ""
        choices = "; ".join(f"line {row.line} {row.operation} {row.array}" for row in rows)
        raise TraceError(f"no such access{asked}. Of this kind there are: {choices or 'none'}")

    def lines_with(self, line: Line) -> set[int]:
        """The line numbers that `line`, a number or a piece of the code, names."""
        if isinstance(line, int):
            return {line}
        return {number for _, number, code in self.source if line in code}

    # ---- words

    def thread_name(self, thread: int) -> str:
        """A thread's number as words: thread 3 of block 1, thread (3,1) of block (0,2)."""
        block, rank = divmod(thread, self.threads_a_block)
        within = self.point(rank, self.block)
        return f"thread {within} of {self.unit} {self.point(block, self.grid)}"

    @staticmethod
    def point(number: int, sizes: tuple[int, int, int]) -> str:
        x, y, z = sizes
        row, column = divmod(number, x)
        if y == z == 1:
            return str(number)
        if z == 1:
            return f"({column},{row})"
        return f"({column},{row % y},{row // y})"

    @cached_property
    def source(self) -> list[tuple[str, int, str]]:
        """(filename, line, text) of the kernel's lines, and of other lines with events."""
        places = {(site.filename, site.line) for site in self.events.sites}
        if self._source is not None:
            known = {place[:2] for place in self._source}
            others = [(*place, raw_line(*place)) for place in sorted(places - known)]
            return [*self._source, *others]
        try:
            text, first = inspect.getsourcelines(self._function)
            filename = self._function.__code__.co_filename
            heads = [i for i, code in enumerate(text) if code.lstrip().startswith("def ")]
            start = heads[0] if heads else 0
            body = [i for i in range(start, len(text)) if text[i].strip()]
            places |= {(filename, first + i) for i in body}
        except (OSError, TypeError):
            filename = self._function.__code__.co_filename
        listing = sorted(places, key=lambda place: (place[0] != filename, *place))
        texts = [(*place, raw_line(*place)) for place in listing]
        indents = [len(text) - len(text.lstrip()) for _, _, text in texts if text.strip()]
        indent = min(indents, default=0)
        return [(name, line, text[indent:]) for name, line, text in texts]

    @cached_property
    def notes(self) -> dict[tuple[str, int], list[tuple[str, float]]]:
        """(filename, line) -> what to say about it, as (text, badness from 0 to 1) pairs."""
        notes: dict[tuple[str, int], list[tuple[str, float]]] = defaultdict(list)

        def say(row: counts.Place, text: str, badness: float = 0.0) -> None:
            notes[row.filename, row.line].append((text, badness))

        for row in self.coalescing:
            fewest = row.fewest / row.requests
            moved = f"{row.operation} {row.array}: {sectors(row.sectors_per_request)}"
            text = f"{moved}, {fewest:.3g} would do = {row.efficiency:.3g} %"
            say(row, text, 1 - row.efficiency / 100)
        for bank in self.banks:
            passes = bank.wavefronts / bank.requests
            fewest = bank.fewest / bank.requests
            text = f"{bank.ways}-way bank conflict, {passes:.3g} passes instead of {fewest:.3g}"
            if not bank.conflicts:
                text = "no bank conflict"
            say(bank, f"{bank.operation} {bank.array}: {text}", 1 - bank.fewest / bank.wavefronts)
        for queue in self.contention:
            if queue.lanes > 1:
                text = f"up to {queue.lanes} lanes of a warp wait for one element"
                say(queue, f"atomic {queue.array}: {text}", 1 - 1 / queue.lanes)
        for other in self.others:
            if other.space == "constant" and other.words > 1:
                text = f"{other.words:.3g} different constants a request, one after the other"
                say(other, f"read {other.array}: {text}", 1 - 1 / other.words)
            else:
                what = f"{other.operation} {other.array} ({other.space})"
                say(other, f"{what}: {other.accesses:,} elements")
        for branch in self.branches:
            if branch.diverged:
                text = f"diverges: lanes disagree in {branch.diverged:,} of {branch.runs:,} runs"
                say(branch, text, 0.5)
        return notes

    @cached_property
    def problems(self) -> list[str]:
        """What is wrong, in a few lines each: error, skipped barriers, races, mistakes."""
        problems = []
        own = self._function.__code__.co_filename if self._function else None
        if self.error is not None:
            problems.append(f"STOPPED: {self.error}\n  The counts below go as far as that.")
        for row in self.barriers:
            if row.skipped:
                some = ", ".join(self.thread_name(thread) for thread in row.skipped[:3])
                rest = f" and {len(row.skipped) - 3:,} more" if len(row.skipped) > 3 else ""
                file = "" if own in (None, row.filename) else f" of {file_name(row.filename)}"
                problems.append(
                    f"BARRIER SKIPPED: line {row.line}{file}, {row.code}\n"
                    f"  Not reached by {some}{rest}, though others of the block wait there."
                )
        for race in self.races:
            problems.append(self._race(race))
        raced = set()
        for race in self.races:
            raced |= {(race.array, race.line), (race.array, race.other.line)}
        for mistake in self.mistakes:
            # what is raced for may well be read too early: one report is enough
            if mistake.what != "uninitialised" or (mistake.array, mistake.line) not in raced:
                problems.append(self._mistake(mistake))
        return problems

    def _race(self, race: race_search.Race) -> str:
        one, other = map(self.thread_name, race.threads)
        verb = {"write": "writes", "read": "reads", "atomic": "changes (atomically)"}
        this_line = f"line {race.line}, {race.code}"
        other_line = f"line {race.other.line}, {race.other.code}"
        if (race.other.line, race.other.filename) == (race.line, race.filename):
            other_line = "the same line"
        both = race.between_blocks and race.within_blocks
        if race.unfenced:
            cure = "The second has seen what the first set behind its threadfence(), but may still"
            cure += " use what was there before: it needs a threadfence() of its own in between."
        elif race.updates:
            cure = "Both read it and write it back there, so no barrier helps. If each change is to"
            cure += " count, use an atomic operation; if one is enough, let one thread make it."
        elif self.unit == "program":
            cure = "Nothing says which of two programs comes first."
        elif self.events.block[race.events[0]] != self.events.block[race.events[1]]:
            cure = "They are in different blocks, for which no syncthreads() helps."
            cure += " So do other threads of one block." if both else ""
        else:
            cure = "No barrier is between them."
            if in_different_rounds(self.events, self.events.function, *race.events):
                cure = "No barrier is between them: they are in different rounds of the loop."
            one_warp, other_warp = self.events.warp[list(race.events)]
            if one_warp != other_warp and (self.events.kind == SYNCWARP).any():
                cure += " A syncwarp() waits for one warp only, and they are in two."
            cure += " Threads of different blocks race so too." if race.between_blocks else ""
        many = f" It is so for {race.elements:,} elements." if race.elements > 1 else ""
        return (
            f"RACE on {race.element}\n  {one} {verb[race.operation]} it in {this_line}\n"
            f"  {other} {verb[race.other_operation]} it in {other_line}\n  {cure}{many}"
        )

    def _mistake(self, row: counts.Mistake) -> str:
        index = ", ".join(map(str, row.indices[0]))
        shape = next((m.shape for m in self.events.memories if m.name == row.array), ())
        one = f"{row.array}[{index}]"
        times = len(row.threads)
        more = f" ({times:,} times in all)" if times > 1 else ""
        who = f"line {row.line}, {row.code}\n  {self.thread_name(row.threads[0])}"
        if row.what == "uninitialised":
            return f"READ BEFORE WRITTEN: {who} reads {one}, which nothing had written yet{more}."
        word = {"read": "reads", "write": "writes", "atomic": "changes"}[row.operation]
        kind = "NEGATIVE INDEX" if row.what == "negative" else "OUT OF BOUNDS"
        return f"{kind}: {who} {word} {one}; {row.array} has shape {shape}{more}."

    @property
    def title(self) -> str:
        sizes = [self._shown(self.grid), self._shown(self.block)]
        threads = self.blocks * self.threads_a_block
        warps = self.blocks * self.events.warps_a_block
        counted = f"{threads:,} thread{'s' * (threads > 1)}, {warps:,} warp{'s' * (warps > 1)}"
        return f"{self.name}[{', '.join(sizes)}]: {counted}"

    @staticmethod
    def _shown(sizes: tuple[int, int, int]) -> str:
        x, y, z = sizes
        if y == z == 1:
            return str(x)
        return f"({x},{y},{z})" if z > 1 else f"({x},{y})"

    @property
    def _remarks(self) -> list[str]:
        """What the report ends with."""
        remarks = []
        if self._source is not None:
            remarks.append(NO_STATEMENTS)
        elif not self.activity:
            remarks.append(
                "The kernel's source was not found, so its lines and branches were not recorded."
            )
        if not self.problems:
            remarks.append(NO_PROBLEMS)
        return remarks

    def __str__(self) -> str:
        lanes = {(row.filename, row.line): row.active for row in self.activity}
        lines = [self.title, ""]
        for problem in self.problems:
            lines += [problem, ""]
        lines.append(f"{'line':>5}  {'code':<{CODE_WIDTH}}  lanes  a warp's request")
        files = {name for name, *_ in self.source}
        last = None
        for filename, line, text in self.source:
            if len(files) > 1 and filename != last:
                lines.append(f"       -- {file_name(filename)}")
                last = filename
            notes = [note for note, _ in self.notes.get((filename, line), [])]
            active = f"{lanes[filename, line]:5.3g}" if (filename, line) in lanes else "     "
            code = cropped(text, CODE_WIDTH)
            first, *more = notes or [""]
            lines.append(f"{line:>5}  {code:<{CODE_WIDTH}}  {active}  {first}".rstrip())
            lines += [" " * (CODE_WIDTH + 16) + note for note in more]
        lines += ["", *self._remarks] if self._remarks else []
        return "\n".join(lines)

    __repr__ = __str__

    def report(self) -> None:
        """Print what each line does: lanes, sectors, bank conflicts, every problem found."""
        print(self)

    def _repr_html_(self) -> str:
        lanes = {(row.filename, row.line): row.active for row in self.activity}
        parts = [f"<p><b>{html.escape(self.title)}</b></p>"]
        for problem in self.problems:
            parts.append(f'<pre style="{PROBLEM}">{html.escape(problem)}</pre>')
        head = "".join(f'<th scope="col" style="{CELL}">{name}</th>' for name in COLUMNS)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>")
        for filename, line, text in self.source:
            notes = "<br>".join(
                bar(badness) + html.escape(note)
                for note, badness in self.notes.get((filename, line), [])
            )
            active = f"{lanes[filename, line]:.3g}" if (filename, line) in lanes else ""
            cells = (line, ""), (html.escape(text), CODE), (active, ""), (notes, "min-width:20em")
            row = "".join(f'<td style="{CELL}{style}">{cell}</td>' for cell, style in cells)
            parts.append(f"<tr>{row}</tr>")
        parts.append("</tbody></table>")
        parts += [f"<p>{remark}</p>" for remark in self._remarks]
        return "\n".join(parts)

    # ---- pictures

    def steps(self, warp: int = 0) -> "Steps":
        """A slider through what each warp does, access by access; on paper, a few of them."""
        from .steps import Steps

        return Steps(self, warp)

    def play(
        self, blocks: int | Iterable[int] | None = None, most: int = 2_000, wrong: bool = False
    ) -> "Player":
        """The launch as a film to watch: each step one instruction of one warp, in turns.

        Left the source, with the line that each warp is at; right the warps with their 32 lanes
        (dark: masked), the sectors or banks that the step takes, the arrays as they fill, barriers
        as gates, atomics as queues, and what it all has cost so far. Buttons, or space, the arrow
        keys, Home and End; point at a lane or an element for its index and value.

        blocks: which are shown, one number or several; None: those of a race if there is one, else
            the first few. most: steps; a longer film leaves some out and says so.
        wrong: begin at the step at which it goes wrong.
        `play(before, after)` of this package shows two on one clock. `.share("film.html")` writes
        one file that plays in any browser. Where nothing can play, a still stands there.
        """
        from .film import Film
        from .player import Player

        film = Film(self, blocks, most)
        return Player(film, start=film.data["stop"] or 0 if wrong else 0)

    def share(self, path: str | Path, **how: Any) -> Path:
        """Write the film as one HTML file that plays in any browser. how: as `play` takes it."""
        return self.play(**how).share(path)

    def draw_memory(
        self,
        line: Line | None = None,
        array: str | None = None,
        operation: str | None = None,
        warp: int | None = None,
        time: int = 0,
    ) -> Any:
        """The sectors that one request touches, for each array of the line (pictures.memory)."""
        from . import pictures

        return pictures.memory(self, line, array, operation, warp, time)

    def draw_banks(
        self,
        line: Line | None = None,
        array: str | None = None,
        operation: str | None = None,
        warp: int | None = None,
        time: int = 0,
    ) -> Any:
        """The banks that one request to shared memory uses (see pictures.banks)."""
        from . import pictures

        return pictures.banks(self, line, array, operation, warp, time)

    def draw_divergence(self, block: int = 0) -> Any:
        """Which lanes run which line (see charts.divergence)."""
        from . import charts

        return charts.divergence(self, block)

    def draw_barriers(self, block: int | None = None) -> Any:
        """How often each thread reaches each barrier (see charts.barriers)."""
        from . import charts

        return charts.barriers(self, block)

    def draw_races(self, number: int = 0) -> Any:
        """Who touches the elements that are raced for (see charts.races)."""
        from . import charts

        return charts.races(self, number)


def sectors(number: float) -> str:
    return f"{number:.3g} sector{'' if number == 1 else 's'}"


def bar(badness: float) -> str:
    """A small bar in HTML: long and red for what is bad, nothing for what is fine."""
    if badness < 0.005:
        return ""
    style = f"display:inline-block;width:{round(40 * badness)}px;height:0.7em"
    style += ";background:#D55E00;margin-right:6px"
    return f'<span aria-hidden="true" style="{style}"></span>'


def raw_line(filename: str, line: int) -> str:
    """A source line with its indentation."""
    return linecache.getline(filename, line).rstrip()


def file_name(filename: str) -> str:
    """A file as a reader knows it."""
    if "ipykernel" in filename or filename.startswith("<"):
        return "a notebook cell"
    return Path(filename).name
