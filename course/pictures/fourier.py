"""Pictures of the chapter The Fourier transform."""

import numpy as np

from course.kernels.fft import phone
from course.pictures.shapes import box, plain, sheet, word
from utils import results
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, INK, OTHERS, chart, figure

SMALL = 8  # points: letters within a picture
NOT_YET = "not recorded yet"
HAND = 0.4  # of the distance between two places, the length of a hand
GAP = 0.6  # of a place, between the halves of a matrix
FLOOR = 1e-4  # of the largest magnitude, the smallest that is drawn


# ---- the sum


def keypad(sound, shown=200):
    """A telephone's keys with the tones of their rows and columns; a sound's first samples."""
    alt = "The twelve keys of a telephone: each row has a low tone, each column a high one; "
    alt += f"beside them the first {shown} samples of a sound."
    fig = figure(7.4, 2.3, alt=alt)
    keys, wave = fig.subplots(1, 2, width_ratios=(1, 2))
    for row, names in enumerate(phone.KEYS):
        word(keys, -0.55, row + 0.45, f"{phone.LOW[row]} Hz", fontsize=SMALL)
        for column, name in enumerate(names):
            _square(keys, column, row, BLOCK_COLOURS[6], name)
    for column, hertz in enumerate(phone.HIGH):
        word(keys, column + 0.46, -0.4, f"{hertz:,}", fontsize=SMALL)
    sheet(keys, len(phone.HIGH), len(phone.KEYS))
    keys.set(xlim=(-1.1, 3.1), ylim=(4.1, -0.7))
    wave.plot(sound[:shown], ".-", color=ACCENT, linewidth=0.6, markersize=3)
    wave.set_xlabel("sample", fontsize=SMALL)
    plain(wave)
    return fig


def hand(k: int = 1, n: int = 8):
    """A hand that makes k turns in n numbers: where it stands, and how far to the right and up."""
    turns = k * np.arange(n) % n / n
    places = np.exp(2j * np.pi * turns)
    alt = f"A hand at {k} n / {n} of a turn for n = 0 to {n - 1}. To the right it reaches "
    alt += ", ".join(f"{right:.1f}" for right in places.real.round(1) + 0.0)
    alt += "; up it reaches " + ", ".join(f"{up:.1f}" for up in places.imag.round(1) + 0.0) + "."
    fig = figure(7.4, 2.5, alt=alt)
    clock, right, up = fig.subplots(1, 3, width_ratios=(1, 1.3, 1.3))
    round_ = np.exp(2j * np.pi * np.linspace(0, 1, 100))
    clock.plot(round_.real, round_.imag, color=OTHERS, linewidth=1)
    for place in sorted(set(turns)):
        at = np.exp(2j * np.pi * place)
        clock.plot([0, at.real], [0, at.imag], color=ACCENT, linewidth=1.6)
        who = " ".join(map(str, np.flatnonzero(turns == place)))
        word(clock, 1.25 * at.real, 1.25 * at.imag, who, fontsize=SMALL)
    clock.set(xlim=(-1.7, 1.7), ylim=(-1.5, 1.5))
    clock.set_aspect("equal")
    clock.axis("off")
    for axes, values, title in ((right, places.real, "to the right"), (up, places.imag, "up")):
        axes.axhline(0, color=INK, linewidth=0.6)
        axes.vlines(range(n), 0, values, color=ACCENT, linewidth=1.6)
        axes.plot(values, "o", color=ACCENT, markersize=4)
        axes.set(ylim=(-1.3, 1.3), yticks=(-1, 0, 1))
        axes.set_xticks(range(n))
        axes.set_title(title, fontsize=SMALL + 1)
        axes.set_xlabel("number n", fontsize=SMALL)
        plain(axes)
    return fig


def turning(signal, frequencies):
    """The terms of the sum for each frequency, one after the other: where do they lead?"""
    signal = np.asarray(signal, float)
    n = np.arange(signal.size)
    paths = {k: np.cumsum(signal * np.exp(-2j * np.pi * k * n / signal.size)) for k in frequencies}
    ends = ", ".join(f"{k}: {abs(path[-1]):.1f}" for k, path in paths.items())
    fig = figure(
        2.6 * len(paths), 2.8, alt=f"How far the terms lead together, by frequency: {ends}."
    )
    every = fig.subplots(1, len(paths), squeeze=False)[0]
    reach = max(abs(path).max() for path in paths.values()) * 1.1
    for axes, (k, path) in zip(every, paths.items(), strict=True):
        walk = np.concatenate([[0], path])
        axes.plot(
            walk.real,
            walk.imag,
            "-",
            color=ACCENT,
            linewidth=1,
        )
        axes.plot(walk[-1].real, walk[-1].imag, "o", color=ALARM)
        axes.plot(0, 0, "o", color=INK, markersize=3)
        axes.set(
            xlim=(-reach, reach),
            ylim=(-reach, reach),
            xticks=[],
            yticks=[],
        )
        axes.set_aspect("equal")
        axes.set_title(f"k = {k}: {abs(path[-1]):.1f} away", fontsize=SMALL + 1)
    return fig


def matrix(n):
    """The matrix of the transform of n points: a hand in each place shows how far it is turned."""
    k = np.arange(n)
    turns = np.outer(k, k) % n / n
    fig, axes = chart(
        3.4, 3.4, alt=f"The matrix of {n} points: in row k, column n, a hand at n k turns."
    )
    x, y = np.meshgrid(k, k)
    _hands(axes, x, y, turns, ACCENT)
    axes.set_xticks(k)
    axes.set_yticks(k)
    axes.set(
        xlim=(-0.6, n - 0.4),
        ylim=(n - 0.4, -0.6),
        xlabel="n: which point",
        ylabel="k",
    )
    axes.set_aspect("equal")
    return fig


def halves(n):
    """The matrix of n points, its even columns moved to the left and its odd ones to the right."""
    k = np.arange(n)
    columns = np.concatenate([k[0::2], k[1::2]])
    alt = f"The matrix of {n} points with its even columns first: below the middle the hands of the"
    alt += " even columns repeat those above, and those of the odd columns point the other way."
    fig, axes = chart(3.9, 3.4, alt=alt)
    for side, colour in enumerate((ACCENT, ALARM)):
        mine = columns[side * n // 2 : (side + 1) * n // 2]
        x, y = np.meshgrid(side * (n / 2 + GAP) + np.arange(n // 2), k + GAP * (k >= n // 2))
        _hands(axes, x, y, np.outer(k, mine) % n / n, colour)
    places = np.arange(n) + GAP * (np.arange(n) >= n // 2)
    axes.set_xticks(places, columns)
    axes.set_yticks(places, k)
    axes.set(xlim=(-0.6, n + GAP - 0.4), ylim=(n + GAP - 0.4, -0.6), ylabel="k")
    axes.set_xlabel("n: even points, then odd points")
    axes.set_aspect("equal")
    return fig


def _hands(axes, x, y, turns, colour):
    """A clock's face with a hand at each place, so many turns backwards from pointing right.

    The picture's y axis points down, so hands are turned over.
    """
    from matplotlib.collections import EllipseCollection

    places = np.column_stack([x.ravel(), y.ravel()])
    face = {"units": "xy", "facecolors": "none", "edgecolors": OTHERS, "linewidths": 0.7}
    faces = EllipseCollection(
        0.84, 0.84, 0, offsets=places, offset_transform=axes.transData, **face
    )
    axes.add_collection(faces)
    hands = HAND * np.exp(-2j * np.pi * turns)
    look = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.008, "color": colour}
    axes.quiver(x, y, hands.real, -hands.imag, **look)


# ---- spectra


def strengths(values, hertz, up_to=1_600):
    """How strong each bin is, as a line to its height. hertz: from one bin to the next."""
    values = np.abs(values)[: up_to // hertz]
    places = hertz * np.arange(values.size)
    loud = np.flatnonzero(values > values.max() / 2)
    peaks = " and ".join(f"{hertz * k:,}" for k in loud)
    fig, axes = chart(7.2, 2.4, alt=f"How strong each frequency is: the peaks are at {peaks} Hz.")
    axes.vlines(places, 0, values, color=ACCENT, linewidth=1.2)
    axes.plot(places, values, "o", color=ACCENT, markersize=2)
    axes.set_xlabel("Hz")
    axes.set_ylim(0, None)
    plain(axes)
    return fig


def spectra(sounds, rate, up_to=None):
    """Magnitudes of sounds' transforms, in decibels of the largest. rate: samples per second.

    sounds: {title: samples}, two beside each other. up_to: the highest frequency that is drawn, Hz.
    """
    alt = "Spectra: " + "; ".join(map(_loudest(rate), sounds.items()))
    rows = -(-len(sounds) // 2)
    fig = figure(7.5, 0.3 + 1.9 * rows, alt=alt)
    every = fig.subplots(rows, min(2, len(sounds)), squeeze=False)
    for axes in every[:, 0]:
        axes.set_ylabel("decibels", fontsize=SMALL)
    for axes, (title, sound) in zip(every.flat, sounds.items(), strict=False):
        size = np.abs(np.fft.rfft(sound))
        decibels = 20 * np.log10(np.maximum(size / size.max(), FLOOR))
        axes.plot(
            np.fft.rfftfreq(len(sound), 1 / rate),
            decibels,
            color=ACCENT,
            linewidth=1,
        )
        axes.set_xlim(0, up_to)
        axes.set_ylim(20 * np.log10(FLOOR), 3)
        axes.set_title(title, fontsize=SMALL + 1)
        axes.set_xlabel("Hz", fontsize=SMALL)
        plain(axes)
    return fig


def _loudest(rate):
    def words(sound):
        title, samples = sound
        bin_ = np.abs(np.fft.rfft(samples)).argmax()
        return f"{title}, loudest at {bin_ * rate / len(samples):,.0f} Hz"

    return words


def aliases(tones, rate, seconds):
    """Tones of several frequencies as waves, and the samples that they share."""
    alt = f"Tones of {' and '.join(map(str, tones))} Hz meet in all {rate:,} samples per second."
    fig, axes = chart(7.2, 2.2, alt=alt)
    time = np.linspace(0, seconds, 2000)
    for colour, tone in zip((ACCENT, BLOCK_COLOURS[4]), tones, strict=True):
        axes.plot(
            time * 1000,
            np.cos(2 * np.pi * tone * time),
            color=colour,
            label=f"{tone:,} Hz",
        )
    samples = np.arange(0, seconds, 1 / rate)
    axes.plot(
        samples * 1000,
        np.cos(2 * np.pi * tones[0] * samples),
        "o",
        color=INK,
        markersize=4,
    )
    axes.set_xlabel("milliseconds")
    above = {"loc": "lower right", "bbox_to_anchor": (1, 1)}
    axes.legend(frameon=False, fontsize=SMALL, ncols=len(tones), **above)
    plain(axes)
    return fig


def loudness(points):
    """The magnitudes of a picture's transform as grey, 0..1, with frequency 0 in the middle."""
    size = np.log1p(np.abs(np.fft.fftshift(points)))
    return (size / size.max()).astype(np.float32)


# ---- orders of the points


def bits_reversed(i, bits):
    """i with its lowest `bits` bits in the opposite order."""
    return int(f"{i:0{bits}b}"[::-1], 2)


def passes_in_place(n):
    """Which places each point of a pass comes from, as Cooley and Tukey have it.

    n: a power of two. A list for each pass, of the two places that each place's result is made of.
    """
    bits = n.bit_length() - 1
    first = [(bits_reversed(i, bits),) for i in range(n)]
    steps = [1 << b for b in range(bits)]
    return [first] + [[(i & ~step, i | step) for i in range(n)] for step in steps]


def passes_of_stockham(n):
    """The same after Stockham: no pass only reorders."""
    found, done = [], 1
    while done < n:
        sources = [None] * n
        for j in range(n // 2):
            to = 2 * j - j % done
            sources[to] = sources[to + done] = (j, j + n // 2)
        found.append(sources)
        done *= 2
    return found


def orders(n=8):
    """Both ways through the passes, side by side: lines from what a place reads to the place."""
    ways = {"Cooley and Tukey: first reversed bits": passes_in_place(n)}
    ways["Stockham: always from n/2 apart"] = passes_of_stockham(n)
    alt = f"The passes of {n} points. " + ". ".join(
        f"{title}: {len(passes)} steps" for title, passes in ways.items()
    )
    fig = figure(7.6, 2.8, alt=alt)
    for axes, (title, passes) in zip(fig.subplots(1, 2), ways.items(), strict=True):
        for step, sources in enumerate(passes):
            for place, origins in enumerate(sources):
                for origin in origins:
                    colour = ACCENT if len(origins) > 1 else ALARM
                    axes.plot(
                        [step, step + 1],
                        [origin, place],
                        color=colour,
                        linewidth=0.8,
                    )
        for step in range(len(passes) + 1):
            axes.plot(
                [step] * n,
                range(n),
                "o",
                color=INK,
                markersize=3.5,
            )
        axes.set(
            xlim=(-0.3, len(passes) + 0.3),
            ylim=(n - 0.5, -0.5),
            xticks=[],
        )
        axes.set_yticks(range(n))
        axes.set_title(title, fontsize=SMALL + 1)
        axes.spines[:].set_visible(False)
    return fig


def two_points(thread: int = 1, n: int = 8):
    """What one thread does in each pass of Stockham's: the two places that it reads and writes."""
    passes = passes_of_stockham(n)
    half = n // 2
    fig, axes = chart(6.6, 3.0, alt=_words_of_thread(thread, n))
    for step, sources in enumerate(passes):
        for place, origins in enumerate(sources):
            mine = origins == (thread, thread + half)
            for origin in origins:
                line = (
                    {"color": ALARM, "linewidth": 2} if mine else {"color": IDLE, "linewidth": 0.7}
                )
                axes.plot([step, step + 1], [origin, place], zorder=2 if mine else 1, **line)
        reads, writes = _places(thread, n, 1 << step)
        words = f"reads {reads[0]}, {reads[1]}\nwrites {writes[0]}, {writes[1]}"
        word(axes, step + 0.5, n + 0.1, words, fontsize=SMALL, va="top")
    for step in range(len(passes) + 1):
        axes.plot([step] * n, range(n), "o", color=INK, markersize=3.5)
    axes.set(xlim=(-0.3, len(passes) + 0.3), ylim=(n + 1.2, -0.5), xticks=[], ylabel="place")
    axes.set_yticks(range(n))
    axes.set_title(f"thread {thread} of {half}", fontsize=SMALL + 1)
    axes.spines[:].set_visible(False)
    return fig


def _places(thread, n, done):
    """What a thread reads and writes in the pass before which `done` points are transformed."""
    to = 2 * thread - thread % done
    return (thread, thread + n // 2), (to, to + done)


def _words_of_thread(thread, n):
    steps = [_places(thread, n, 1 << b) for b in range(n.bit_length() - 1)]
    said = "; ".join(
        f"pass {number}: reads {reads[0]} and {reads[1]}, writes {writes[0]} and {writes[1]}"
        for number, (reads, writes) in enumerate(steps, 1)
    )
    return f"Thread {thread} in the passes of {n} points: {said}."


# ---- who has what


def exchange(n=16, radix=4):
    """Who has which point before and after the exchange: a colour for each thread."""
    threads = n // radix
    before = np.arange(n) % threads
    after = np.arange(n) // radix
    alt = (
        f"{n} points, {threads} threads: each reads points {threads} apart, and writes {radix} side"
        " by side."
    )
    fig, axes = chart(7, 1.7, alt=alt)
    rows = {"read by thread": before, "written by thread": after}
    for y, (title, owners) in enumerate(rows.items()):
        word(axes, -0.4, y + 0.45, title, ha="right", fontsize=SMALL)
        for place, owner in enumerate(owners):
            _square(axes, place, y, BLOCK_COLOURS[owner % len(BLOCK_COLOURS)], owner)
    sheet(axes, n, 2.2)
    axes.set_xlim(left=-4)
    return fig


def _square(axes, x, y, colour, text):
    box(axes, x, y, 0.92, 0.92, colour, line=0.6)
    word(axes, x + 0.46, y + 0.46, text, fontsize=SMALL)


def two_passes(side=8, together=2):
    """A long transform as a matrix: tiles of columns in the first pass, of rows in the second."""
    alt = f"A matrix of {side} rows: a block takes {together} columns, and then {together} rows."
    fig = figure(6, 2.8, alt=alt)
    titles = ("1: transform columns, turn", "2: transform rows, transpose")
    for axis, (axes, title) in enumerate(zip(fig.subplots(1, 2), titles, strict=True)):
        for row in range(side):
            for column in range(side):
                tile = (column, row)[axis] // together
                colour = BLOCK_COLOURS[tile % len(BLOCK_COLOURS)]
                _square(axes, column, row, colour, row * side + column)
        sheet(axes, side, side, below=0.2)
        axes.set_title(title, fontsize=SMALL + 1)
    return fig


# ---- what a GPU said


def _value(name):
    entry = results.find(name)
    return entry["value"] if entry else None


def whose(name):
    """Which GPU a recorded result is of, and when it was measured."""
    entry = results.find(name)
    return f"{entry['gpu']}, {entry['date'][:10]}" if entry else NOT_YET


def _short(value: float) -> str:
    """Three digits, or all of a whole number's."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _bars(groups, rivals, title, ylabel):
    """groups: {label: {rival: value}}; what is None is left out."""
    words = "; ".join(
        f"{label}: " + ", ".join(f"{who} {_short(value)}" for who, value in values.items() if value)
        for label, values in groups.items()
    )
    fig, axes = chart(7.4, 2.8, alt=f"{title}, {ylabel}. {words or NOT_YET}")
    width = 0.8 / len(rivals)
    for i, (rival, colour) in enumerate(rivals.items()):
        heights = [values.get(rival) or 0 for values in groups.values()]
        places = np.arange(len(groups)) + (i - (len(rivals) - 1) / 2) * width
        axes.bar(places, heights, width, label=rival, color=colour)
    axes.set_xticks(range(len(groups)), list(groups))
    axes.set(title=title, ylabel=ylabel)
    axes.margins(y=0.2)  # room for the legend
    axes.legend(
        frameon=False,
        fontsize=SMALL,
        ncols=len(rivals),
        loc="upper right",
    )
    plain(axes)
    return fig


RACES = {
    "2^8": "fft/2^8",
    "2^10": "fft/2^10",
    "2^12": "fft/2^12",
    "2^13": "fft/2^13",
    "2^16": "fft/2^16",
    "1024²": "fft2/1024",
}
RIVALS = {
    "ours": ACCENT,
    "cufft": BLOCK_COLOURS[1],
    "copy": IDLE,
}


def speeds():
    """Recorded GB/s of our transforms, of cuFFT's and of a copy, read and write."""
    groups = {}
    for label, name in RACES.items():
        rates = {rival: _value(f"{name}/{rival}/bandwidth") for rival in RIVALS}
        groups[label] = {rival: rate / 1e9 for rival, rate in rates.items() if rate}
    return _bars(groups, RIVALS, whose("fft/2^10/ours/bandwidth"), "GB/s, read and written")


def _rows(names, label):
    """Lines with the recorded times of the names, the slowest first; or that there are none."""
    times = {name: _value(f"{path}/time") for name, path in names.items()}
    times = {name: time for name, time in times.items() if time}
    if not times:
        return NOT_YET
    best = min(times.values())
    lines = [f"{name:28} {time:8.3f} ms {time / best:7.1f} ×" for name, time in times.items()]
    return "\n".join([label, *lines])


LADDER = {
    "a sum for each result": "sum",
    "a launch per pass": "launches",
    "a block, radix 2": "block",
    "in registers, radix 2": "radix_2",
    "in registers, radix 4": "radix_4",
    "in registers, radix 8": "radix_8",
    "in registers, radix 16": "radix_16",
    "cuFFT": "cufft",
    "a copy": "copy",
}


def ladder():
    """The recorded times of all ways to transform rows of 256 points."""
    names = {title: f"fft/ladder/256/{way}" for title, way in LADDER.items()}
    return _rows(names, f"rows of 256 points, {whose('fft/ladder/256/block/time')}")


def share(name):
    """A recorded share in words: "1.21 times cuFFT's speed (NVIDIA H200, 2026-11-22)"."""
    value = _value(name)
    return f"{value:.2f} times cuFFT's speed ({whose(name)})" if value else NOT_YET


FILTERS = {
    "torch": ("PyTorch, directly", BLOCK_COLOURS[1]),
    "direct": ("ours, directly", BLOCK_COLOURS[4]),
    "torch_fft": ("PyTorch's transform", BLOCK_COLOURS[2]),
    "ours": ("ours, transform", ACCENT),
}


def filter_times():
    """{way: {filter size: recorded ms}}; the better of those of one name that differ in shape."""
    found = {way: {} for way in FILTERS}
    for entry in results.load():
        parts = entry["name"].split("/")
        if parts[:2] != ["fft", "filter"] or parts[-1] != "time":
            continue
        way = parts[3]
        if way.startswith("direct"):
            way = "direct"
        if way == "torch_depthwise":
            way = "torch"
        size = int(parts[2])
        if way in found:
            found[way][size] = min(entry["value"], found[way].get(size, np.inf))
    return {way: dict(sorted(times.items())) for way, times in found.items() if times}


def crossing(rival="direct"):
    """The smallest recorded filter size at which our transform beats another way, or None.

    rival: a key of FILTERS.
    """
    times = filter_times()
    sizes = times.get("ours", {}).keys() & times.get(rival, {}).keys()
    won = [size for size in sizes if times["ours"][size] < times[rival][size]]
    return min(won, default=None)


def crossover():
    """Time against filter size: directly, and through the transform, as recorded."""
    times = filter_times()
    size = crossing()
    words = f"from {size} × {size} on the transform wins" if size else NOT_YET
    fig, axes = chart(
        6.6, 3.2, alt=f"64 pictures of 1024 × 1024 filtered, by filter size: {words}."
    )
    for way, values in times.items():
        title, colour = FILTERS[way]
        axes.plot(
            list(values),
            list(values.values()),
            "o-",
            color=colour,
            label=title,
        )
    if times:
        axes.set(xscale="log", yscale="log")
        ticks = sorted(times["ours"])
        axes.set_xticks(ticks, list(map(str, ticks)))
        axes.minorticks_off()
        axes.legend(frameon=False, fontsize=SMALL)
    axes.set(xlabel="K, of K × K taps", ylabel="ms", title=whose("fft/filter/15/ours/time"))
    plain(axes)
    return fig
