"""Pictures of the chapter Reductions and scans: trees, scans, compaction, look-back, the ring, and
the photograph.
"""

from course.kernels.reductions import photo
from course.pictures.shapes import arrow, box, sheet, word
from utils.plots import ACCENT, BLOCK_COLOURS, IDLE, chart, images
from utils.plots.svg import FAINT, GREY, ON_COLOUR, Drawing, strong

WAITING = "#ffffff"
KNOWN = "#cfe8cf"
NAMES, PLACE = 96, 62  # pixels: the rounds' names, a place of shared memory
TALL, RISE = 36, 66  # pixels: a place, from one round to the next
FLAT = 56  # pixels: the same where there are many rounds


def additions(way, threads):
    """For each round of a rung's tree what is added: (thread, its place, the other's place).

    way: "divergent", "conflicts" or "sequential", as in `sum_ladder`; threads: a power of two.
    """
    steps = [1 << k for k in range(threads.bit_length() - 1)]
    if way == "divergent":
        return [[(t, t, t + step) for t in range(0, threads, 2 * step)] for step in steps]
    if way == "conflicts":
        spans = [(step, threads // (2 * step)) for step in steps]
        return [[(t, 2 * step * t, 2 * step * t + step) for t in range(n)] for step, n in spans]
    return [[(t, t, t + step) for t in range(step)] for step in reversed(steps)]


def tree(way, values, shown=None):
    """A block's tree over so few values: which thread adds what in each round.

    way: as for `additions`; values: a power of two of them; shown: rounds, None for all.
    """
    rounds = additions(way, len(values))
    said = "; ".join(f"round {k}: {_who(added)}" for k, added in enumerate(rounds, 1))
    names = ["at first", *(f"round {k + 1}" for k in range(len(rounds)))]
    picture = _Rows(names, len(values), shown=shown)
    row = list(values)
    picture.row(0, row, lit=range(len(row)))
    for k, added in enumerate(rounds):
        for _, place, other in added:
            row[place] += row[other]
            picture.move(k, place, place)
            picture.move(k, other, place)
        lit = {place: f"thread {thread}" for thread, place, _ in added}
        picture.row(k + 1, row, lit, below=lit)
    return picture.drawing(f"{len(values)} values become one, {row[0]}. Who adds what: {said}.")


def _who(added):
    return ", ".join(f"thread {t} places {place} and {other}" for t, place, other in added)


def hillis_steele(values, shown=None):
    """Everybody adds the value 1, 2, 4 ... places to the left; coloured what is complete.

    shown: rounds, None for all.
    """
    steps = [1 << k for k in range((len(values) - 1).bit_length())]
    names = ["at first", *(f"{step} to the left" for step in steps)]
    picture = _Rows(names, len(values), shown=shown)
    row = list(values)
    picture.row(0, row, lit=range(1))
    for k, step in enumerate(steps):
        for place in range(step, len(row)):
            picture.move(k, place - step, place)
        row = [v + (row[i - step] if i >= step else 0) for i, v in enumerate(row)]
        picture.row(k + 1, row, lit=range(2 * step))
    alt = f"{len(row)} values become their running sums, {_list(row)}, in {len(steps)} rounds."
    return picture.drawing(alt)


def blelloch(values, shown=None):
    """The tree up, which leaves sums, and down again, which leaves what lies before each value.

    values: a power of two of them; shown: rounds, None for all.
    """
    count = len(values)
    steps = [1 << k for k in range(count.bit_length() - 1)]
    names = ["at first", *["up"] * len(steps), "the last: 0", *["down"] * len(steps)]
    picture = _Rows(names, count, rise=FLAT, shown=shown)
    row = list(values)
    picture.row(0, row, lit=range(count))
    for k, step in enumerate(steps):
        ends = range(2 * step - 1, count, 2 * step)
        for right in ends:
            row[right] += row[right - step]
            picture.move(k, right - step, right)
        picture.row(k + 1, row, lit=ends)
    row[-1] = 0
    picture.row(len(steps) + 1, row, lit=[count - 1])
    for k, step in enumerate(reversed(steps), len(steps) + 1):
        lit = []
        for right in range(2 * step - 1, count, 2 * step):
            left = right - step
            row[left], row[right] = row[right], row[right] + row[left]
            lit += [left, right]
            for ends in ((right, left), (right, right), (left, right)):
                picture.move(k, *ends)
        picture.row(k + 1, row, lit)
    return picture.drawing(
        f"A tree over {_list(values)}: up {len(steps)} rounds of sums, then down as many, "
        f"which leave the sum of what lies before each: {_list(row)}."
    )


def compact(values, keep):
    """How running sums of marks say where each kept value goes. keep: whether a value is kept."""
    marks = [int(keep(value)) for value in values]
    places = [sum(marks[: i + 1]) for i in range(len(marks))]
    kept = [value for value, mark in zip(values, marks, strict=True) if mark]
    picture = _Rows(["value", "keep it?", "running sum", "result"], len(values))
    lit = [i for i, mark in enumerate(marks) if mark]
    for level, row in enumerate((values, marks, places)):
        picture.row(level, row, lit)
    picture.row(3, kept, lit=range(len(kept)))
    for i in lit:
        picture.move(2, i, places[i] - 1)
    return picture.drawing(
        f"Of {_list(values)} are kept {_list(kept)}; their running sums, {_list(places)} in all, "
        "less one, are their places."
    )


def _list(numbers):
    return " ".join(map(str, numbers))


class _Rows:
    """Rows of numbers below one another, and arrows from each row to the next."""

    def __init__(self, names, places, rise=RISE, shown=None):
        """shown: how many rounds have been done; None: all of them."""
        self.rise = rise
        self.levels = len(names) - 1
        self.shown = self.levels if shown is None else shown
        self.sheet = Drawing(NAMES + PLACE * places, rise * (len(names) - 1) + TALL + 2, alt="")
        for level, name in enumerate(names):
            self.sheet.text_from(0, rise * level + TALL / 2, name, size=14)

    def row(self, level, numbers, lit, below=None):
        """The numbers; lit: places in colour; below: small words under the numbers, by place."""
        if level > self.shown:
            return
        for place, number in enumerate(numbers):
            left, top = NAMES + PLACE * place, self.rise * level + 1
            on = place in lit
            self.sheet.box(left, top, PLACE - 6, TALL, fill=BLOCK_COLOURS[1] if on else FAINT, rx=3)
            words = (below or {}).get(place)
            middle, colour = left + PLACE / 2 - 3, ON_COLOUR if on else GREY
            self.sheet.text(middle, top + TALL * (0.32 if words else 0.5), number, colour=colour)
            if words:
                self.sheet.text(middle, top + TALL * 0.76, words, size=11, colour=colour)

    def move(self, level, start, end):
        """An arrow from a place of this row to one of the next."""
        if level >= self.shown:
            return
        x1, x2 = (NAMES + PLACE * (place + 0.5) - 3 for place in (start, end))
        top, bottom = self.rise * level + TALL + 2, self.rise * (level + 1)
        colour, thick = (GREY, 1.0) if start == end else (strong(ACCENT), 1.3)
        self.sheet.arrow(x1, top, x2, bottom, colour=colour, thick=thick, head=6)

    def drawing(self, alt):
        """The picture, which says what it shows."""
        done = f" Shown after round {self.shown}." if self.shown < self.levels else ""
        self.sheet.alt = alt + done
        return self.sheet


#: A warp's job in the ring, and what it waits for.
#: Who does what with a tile, what it waits for, and for how many ticks: the ticks are made up
JOBS = {
    "load": ("mover", "loads a tile", "a free stage", 2),
    "add": ("scanners", "add up their parts", "loaded", 1),
    "tell": ("publisher", "tells the tile's sum", "added", 1),
    "gather": ("gatherer", "adds the tiles before", "other blocks' sums", 1),
    "scan": ("scanners", "scan in place", "known", 1),
    "store": ("mover", "stores the tile", "scanned", 2),
}
#: Ticks until what was loaded is there, and until other blocks have told their sums, too
FLIGHT, OTHERS = 3, 6
TICK, LANE = 8, 30  # pixels: a tick, a job's row
FEWEST, MOST = 3, 8  # stages


def ring_schedule(stages: int, tiles: int = 10) -> list[tuple[str, int, int, int]]:
    """(job, tile, start, end) in ticks, of a block whose ring has so many stages.

    Each role takes its tiles in the order of scan_ring.cu: the mover loads a tile into a stage
    once it has stored what was there; the scanners are `stages - 2` tiles further when they scan.
    """
    lag = stages - 2
    free = dict.fromkeys(("mover", "scanners", "publisher", "gatherer"), 0)
    done, pieces = {}, []

    def do(job, tile, ready=0):
        who, *_, ticks = JOBS[job]
        start = max(free[who], ready)
        free[who] = done[job, tile] = start + ticks
        pieces.append((job, tile, start, start + ticks))

    for tile in range(min(stages, tiles)):
        do("load", tile)
    for k in range(tiles + lag):
        if k < tiles:
            do("add", k, done["load", k] + FLIGHT)
            do("tell", k, done["add", k])
            do("gather", k, done["tell", k] + OTHERS)
        if k >= lag:
            do("scan", k - lag, done["gather", k - lag])
            do("store", k - lag, done["scan", k - lag])
            if k - lag + stages < tiles:
                do("load", k - lag + stages)
    return pieces


def ring(stages: int = FEWEST):
    """A block's warps in time: which job each does, for which tile, with so many stages."""
    pieces = ring_schedule(stages)
    end = max(piece[3] for piece in pieces)
    longest = max(piece[3] for piece in ring_schedule(FEWEST))
    busy = sum(stop - start for job, _, start, stop in pieces if JOBS[job][0] == "mover")
    words = "; ".join(
        f"the {who} {what} (waits for: {wait})" for who, what, wait, _ in JOBS.values()
    )
    said = f"{stages} stages: memory is busy {busy / end:.0%} of the time"
    left = 250
    drawing = Drawing(left + TICK * longest + 16, 46 + LANE * len(JOBS), alt=f"{said}. {words}.")
    drawing.heading(8, 16, said)
    rows = {job: 36 + LANE * row for row, job in enumerate(JOBS)}
    for job, (who, what, wait, _) in JOBS.items():
        drawing.text_from(8, rows[job] + 7, f"{who} {what}", size=12)
        drawing.text_from(8, rows[job] + 20, f"waits for: {wait}", size=10, colour=GREY)
    for job, tile, start, stop in pieces:
        colour = BLOCK_COLOURS[tile % len(BLOCK_COLOURS)]
        x, width = left + TICK * start, TICK * (stop - start) - 1
        drawing.box(x, rows[job] + 2, width, LANE - 8, fill=colour, rx=2)
        drawing.text(x + width / 2, rows[job] + 13, tile, size=9, colour=ON_COLOUR)
    drawing.line(left + TICK * end, 30, left + TICK * end, drawing.height - 8, colour=ACCENT)
    return drawing


def beside(entry: dict | None) -> None:
    """Prints a recorded speed-up over CUB; nothing where none is recorded."""
    if entry is None:
        return
    what = entry["name"].removesuffix("/speedup_over_cub")
    when = entry["date"][:10]
    print(f"{what:16} {entry['value']:.2f} times CUB's speed ({entry['gpu']}, {when})")


#: When the blocks of eight tiles begin to run: not in their order; and the sums of the tiles.
ARRIVALS = (1, 0, 3, 2, 6, 4, 5, 8)
SUMS = (3, 1, 4, 2, 5, 9, 2, 6)
STATES = {"": WAITING, "sum": IDLE, "prefix": KNOWN}


def published(moment, arrivals=ARRIVALS):
    """What each tile has published at a moment: "", "sum" or "prefix", by the rule of look-back.

    A tile publishes its sum when its block begins, and a moment later its prefix, if it then sees
    a sum from each tile before it, or a prefix on the way. arrivals: of the tiles, moments.
    """
    states = [""] * len(arrivals)
    for now in range(moment + 1):
        before = tuple(states)
        for tile, arrival in enumerate(arrivals):
            if arrival == now:
                states[tile] = "sum"
            elif before[tile] == "sum" and nearest_prefix(before, tile) is not None:
                states[tile] = "prefix"
    return states


def nearest_prefix(states, tile):
    """The tile before this one at which looking back ends, -1 before all; None: it must wait."""
    for before in range(tile - 1, -1, -1):
        if states[before] != "sum":
            return before if states[before] == "prefix" else None
    return -1


def _note(tile, what):
    """What a tile has published, with its number: "sum 5", "prefix 14"; "" for nothing."""
    numbers = {"": "", "sum": SUMS[tile], "prefix": sum(SUMS[: tile + 1])}
    return f"{what} {numbers[what]}".strip()


def arriving(moment, arrivals=ARRIVALS):
    """Look-back while blocks begin when they like: what is published at a moment, who looks where.

    A line goes from each tile that still needs its prefix to where it ends, or has to wait; a dot
    for each sum that it adds on its way.
    """
    states = published(moment, arrivals)
    notes = [_note(tile, what) for tile, what in enumerate(states)]
    words = ", ".join(f"tile {t} {note or 'nothing'}" for t, note in enumerate(notes))
    fig, axes = chart(7.2, 2.0, alt=f"Moment {moment}. Published: {words}.")
    sheet(axes, 2 * len(states), 3.2)
    for tile, what in enumerate(states):
        box(axes, 2 * tile, 0.5, 1.8, 1, STATES[what])
        word(axes, 2 * tile + 0.9, 0.2, f"tile {tile}")
        weight = "bold" if what == "prefix" else "normal"
        word(axes, 2 * tile + 0.9, 1, notes[tile] or "-", weight=weight)
    lookers = [tile for tile, what in enumerate(states) if what == "sum" and tile]
    for line, tile in enumerate(lookers):
        _look(axes, states, tile, line)
    return fig


def _look(axes, states, tile, line):
    """The way of a tile's look back, on a line of its own below the tiles."""
    end = nearest_prefix(states, tile)
    waits = end is None
    if waits:
        end = max(before for before in range(tile) if not states[before])
    start, height = 2 * tile + 0.9, 1.95 + 0.4 * line
    to = 2 * max(end, 0) + 0.5 + 0.4 * line  # lines end beside each other
    axes.plot([start, start, to], [1.5, height, height], color=ACCENT, linewidth=1.2)
    arrow(axes, to, height, to, 1.52)
    added = [2 * before + 0.9 for before in range(end + 1, tile)]
    axes.plot(added, [height] * len(added), "o", color=ACCENT, markersize=4)
    if waits:
        word(axes, start + 0.15, height, f"waits for {end}", color=ACCENT, ha="left")


def photograph(packets):
    """The pixels of the photograph as their packets stand: [pixels] int32."""
    pixels = photo.brightness(packets)
    side = len(pixels)
    found = int((packets == photo.sent(side)).sum())
    whole = found == packets.size
    shows = "a planet with a ring, among stars" if whole else "bright and dark, mixed"
    if not packets.any():
        shows = "all black"
    alt = f"{side} × {side} pixels: {shows}. {found:,} of them are where they belong."
    return images([pixels], alt=alt, width=3.4)
