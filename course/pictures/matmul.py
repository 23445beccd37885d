"""Pictures and facts of chapter 10, The matmul ladder."""

import re
from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from utils import results
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, INK, figure


@dataclass(frozen=True)
class Measured:
    """What a rung reached: FLOP/s, its share of cuBLAS's speed on the same matrices in the same run, its largest error."""

    rate: float
    share: float
    error: float | None = None  # against float64, as a share of a typical element; None where it was not looked for


# ---- recorded results ---------------------------------------------------------------------------------------------


def recorded(folder=None) -> tuple[str, dict]:
    """(GPU and date, {(kind, n, rung): Measured}) of the newest recorded ladder; ("", {}) where there is none."""
    entries = [e for e in results.load(folder) if e["name"].startswith("matmul/")]
    if not entries:
        return "", {}
    newest = max(entries, key=lambda e: e["date"])
    values = {e["name"]: e["value"] for e in entries if e["gpu"] == newest["gpu"]}
    found = {}
    for name, share in values.items():
        match = re.fullmatch(r"matmul/(\w+)/(\d+)/(\w+)/share_of_cublas", name)
        if match and f"{name.rpartition('/')[0]}/rate" in values:
            (kind, n, rung), path = match.groups(), name.rpartition("/")[0]
            found[kind, int(n), rung] = Measured(values[f"{path}/rate"], share, values.get(f"{path}/error"))
            found[kind, int(n), "cuBLAS"] = Measured(values.get(f"matmul/{kind}/{n}/cublas/rate", np.nan), 1.0)
    return f"{newest['gpu']}, {newest['date'][:10]}", found


def recorded_line(path: str) -> str:
    """What is recorded of a rung, such as ``matmul/fp32/4096/tile``, in a line; or that nothing is."""
    share, rate, error = (results.find(f"{path}/{what}") for what in ("share_of_cublas", "rate", "error"))
    if not share or not rate:
        return "  no GPU, so no time; nothing is recorded yet"
    return (f"  recorded on {share['gpu']}, {share['date'][:10]}: {rate['value'] / 1e12:.2f} TFLOP/s, "
            f"{share['value']:.1%} of cuBLAS" + (f"; error {error['value']:.1e}" if error else ""))


def table(known: dict) -> str:
    """Speed beside error for everything in {(kind, n, rung): Measured} whose error is known; "" where nothing is.

    By type and size, the slowest first.
    """
    rows = [(kind, n, rung, found) for (kind, n, rung), found in known.items() if found.error is not None]
    rows.sort(key=lambda row: (("fp32", "tf32", "bf16").index(row[0]), row[1], row[3].rate))
    lines = [f"{kind}  {n:5}  {rung:16} {found.rate / 1e12:8.2f} TFLOP/s {found.share:7.1%} of cuBLAS   error {found.error:.1e}"
             for kind, n, rung, found in rows]
    return "\n".join(lines)


# ---- charts -------------------------------------------------------------------------------------------------------


def ladder_chart(shares: dict[str, float], title: str, other: Set[str] = frozenset()):
    """A bar a rung: its share of cuBLAS. shares: name -> share, from the ladder's foot; `other`: names in another colour."""
    words = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
    fig = figure(8, 0.9 + 0.22 * len(shares), alt=f"{title}: {words}")
    axes = fig.add_subplot()
    colours = [BLOCK_COLOURS[1] if name in other else ACCENT for name in shares]
    bars = axes.barh(list(shares), [100 * share for share in shares.values()], color=colours, height=0.7)
    axes.bar_label(bars, [f"{share:.1%}" for share in shares.values()], padding=3, fontsize=8.5,
                   bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6})  # legible on cuBLAS's line
    axes.axvline(100, color=ALARM, linewidth=1.2)
    axes.set(xlim=(0, 118), xlabel="% of cuBLAS's speed on the same matrices (line: cuBLAS)")
    axes.tick_params(axis="y", labelsize=8.5)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize=9.5, loc="left", color=INK)
    return fig


def size_chart(rates: dict[str, dict[int, float]], title: str):
    """TFLOP/s against the side of the matrices, a line a rung. rates: name -> {n: FLOP/s}; cuBLAS is drawn dashed."""
    words = "; ".join(name + " " + ", ".join(f"{n}: {rate / 1e12:.3g}" for n, rate in line.items())
                      for name, line in rates.items())
    fig = figure(8, 4.2, alt=f"{title}. TFLOP/s by side: {words}")
    axes = fig.add_subplot()
    sides = sorted({n for line in rates.values() for n in line})
    for number, (name, line) in enumerate(rates.items()):
        of_cublas = name == "cuBLAS"
        colour = INK if of_cublas else _LINES[number % len(_LINES)]
        axes.plot(list(line), [rate / 1e12 for rate in line.values()], "s--" if of_cublas else "o-", color=colour, label=name,
                  linewidth=1.6, markersize=4)
    axes.set(xscale="log", yscale="log", xlabel="side n of the matrices", ylabel="TFLOP/s")
    axes.set_xticks(sides, [str(n) for n in sides])
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1, 0.5))
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize=9.5, loc="left", color=INK)
    return fig


_LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#8C564B", "#B8A600")


def roofline(peak: float, bytes_per_second: float, rungs: dict[str, tuple[float, float]], title: str):
    """Rungs under a GPU's roofs. rungs: name -> (FLOPs for each byte that its blocks ask of global memory, FLOP/s)."""
    words = ", ".join(f"{name} {x:.3g} FLOPs a byte, {rate / 1e12:.3g} TFLOP/s" for name, (x, rate) in rungs.items())
    ridge = peak / bytes_per_second
    fig = figure(8, 4, alt=f"{title}: roofs {bytes_per_second / 1e12:.3g} TB/s and {peak / 1e12:.3g} TFLOP/s, meeting at "
                 f"{ridge:.1f} FLOPs a byte. {words}")
    axes = fig.add_subplot()
    x = np.geomspace(0.1, 300, 200)
    axes.plot(x, np.minimum(peak, bytes_per_second * x) / 1e12, color=INK, linewidth=1.8)
    axes.axvline(ridge, color=INK, linestyle=":", linewidth=0.9)
    axes.text(ridge * 0.93, 0.12, f"ridge: {ridge:.1f}", fontsize=8.5, color=INK, ha="right")
    for intensity, rate in rungs.values():
        axes.plot(intensity, rate / 1e12, "o", color=ACCENT, markersize=5)
    last = np.inf
    for name, (intensity, rate) in sorted(rungs.items(), key=lambda item: -item[1][1]):  # names one below the other
        crowded = intensity > ridge
        place = min(np.log10(rate / 1e12), last - 0.15) if crowded else np.log10(rate / 1e12)
        last = place if crowded else last
        axes.annotate(name, (intensity, rate / 1e12), xytext=(110 if crowded else intensity * 1.3, 10**place), fontsize=8,
                      va="center", arrowprops={"arrowstyle": "-", "color": "#BBBBBB", "linewidth": 0.6})
    axes.set(xscale="log", yscale="log", ylim=(0.1, peak / 1e12 * 2), xlim=(0.1, 300),
             xlabel="FLOPs for each byte that the blocks ask of global memory", ylabel="TFLOP/s")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize=9.5, loc="left", color=INK)
    return fig


def search_map(rates: dict[tuple[str, str], float], rows: str, columns: str, title: str):
    """A search over two choices as a heat map of TFLOP/s. rates: (row, column) -> FLOP/s; what is missing did not run."""
    across, down = (list(dict.fromkeys(key[axis] for key in rates)) for axis in (1, 0))
    grid = np.array([[rates.get((r, c), np.nan) for c in across] for r in down]) / 1e12
    words = ", ".join(f"{r} / {c}: {rate / 1e12:.3g}" for (r, c), rate in rates.items())
    fig = figure(1.9 + 1.15 * len(across), 1.1 + 0.42 * len(down), alt=f"{title}, TFLOP/s: {words}")
    axes = fig.add_subplot()
    axes.set_facecolor(IDLE)
    axes.imshow(grid, cmap="viridis", aspect="auto")
    middle = np.nanmin(grid) + (np.nanmax(grid) - np.nanmin(grid)) / 2
    for (y, x), value in np.ndenumerate(grid):
        if np.isfinite(value):
            best = value == np.nanmax(grid)
            axes.text(x, y, f"{value:.1f}", ha="center", va="center", fontsize=9, fontweight="bold" if best else "normal",
                      color=INK if value > middle else "white")
    axes.set_xticks(range(len(across)), across, fontsize=8.5)
    axes.set_yticks(range(len(down)), down, fontsize=8.5)
    axes.set(xlabel=columns, ylabel=rows)
    axes.set_title(title, fontsize=9.5, loc="left", color=INK)
    return fig
