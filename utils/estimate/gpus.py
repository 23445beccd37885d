"""The constants of each GPU that the model divides by: measured where it was, else scaled.

A GPU is known by one of two ways; `Gpu.how` says which:

- measured: `python -m course.kernels.machine.measure` ran on it (names `machine/...` of its results
  file);
- data sheet: everything scaled from the measured GPU by SMs, clock and bandwidth of data sheets.
"""

import dataclasses
import functools
import json
from dataclasses import dataclass, field

from utils import results
from utils.data_sheets import FP32_UNITS, data_sheet
from utils.files import ASSETS
from utils.results import likeness

MIB = 1 << 20
MEASURED = "NVIDIA H200"  # from which others are scaled
#: What a learner may call them -> (name of the results file's GPU, row of the data sheets)
NAMES: dict[str, tuple[str | None, str]] = {
    "H200": ("NVIDIA H200", "H200"),
    "H100": ("NVIDIA H100 80GB HBM3", "H100 SXM"),
    "T4": (None, "Tesla T4"),
    "A100": (None, "A100"),
    "RTX 3090": (None, "GeForce RTX 3090"),
    "RTX 4090": (None, "GeForce RTX 4090"),
    "RTX 5090": (None, "GeForce RTX 5090"),
    "B200": (None, "B200"),
}
CAPABILITY = {
    "H200": (9, 0),
    "H100": (9, 0),
    "T4": (7, 5),
    "A100": (8, 0),
    "RTX 3090": (8, 6),
    "RTX 4090": (8, 9),
    "RTX 5090": (12, 0),
    "B200": (10, 0),
}
#: SMs of GPUs whose data sheet does not say so; B200's, and its L2, as Chips and Cheese report it
#: (chipsandcheese.com/p/nvidias-b200-keeping-the-cuda-juggernaut)
SMS = {"H200": 132, "B200": 148}
#: L2 caches in MiB: NVIDIA's white papers of Turing, A100, GA102, H100, Ada and RTX Blackwell,
#: which the table of the data sheets names
L2 = {"T4": 4, "A100": 40, "RTX 3090": 6, "RTX 4090": 72, "H100": 50, "H200": 50}
L2 |= {"RTX 5090": 96, "B200": 126}
FP32_UNITS_OF_SM = 128
LANES_A_SECTOR = 8  # of neighbouring 4-byte counters
#: How far resources overlap (see model.py), found by `course.kernels.machine.judge --calibrate`
OVERLAP = ASSETS / "recorded" / "overlap.json"
FP64_SHARE = {(7, 5): 1 / 16, (8, 6): 1 / 32, (8, 9): 1 / 32, (12, 0): 1 / 32}


@dataclass(frozen=True)
class Gpu:
    """name: as in NAMES. how: "measured" or "data sheet".

    rates: things per second of the whole GPU. cycles: latencies. memory: (bytes, seconds) of large
    reads and writes, launch left out. Sizes in bytes, times in seconds, clock in Hz.
    """

    name: str
    how: str
    compute_capability: tuple[int, int]
    sms: int
    clock: float
    l2_bytes: int
    launch: float
    turn: float
    exponent: float
    rates: dict[str, float] = field(default_factory=dict)
    cycles: dict[str, float] = field(default_factory=dict)
    reads: tuple[tuple[float, float], ...] = ()
    writes: tuple[tuple[float, float], ...] = ()


class Constants:
    """What was recorded of one GPU."""

    def __init__(self, gpu: str) -> None:
        self.gpu = gpu

    def of(self, name: str) -> float:
        entry = results.find(name, self.gpu)
        if entry is None:
            raise LookupError(f"{name} is not recorded of {self.gpu}")
        value: float = entry["value"]
        return value

    def __getitem__(self, name: str) -> float:
        return self.of(f"machine/{name}")


@functools.cache
def gpu(name: str) -> Gpu:
    """The constants of a GPU by its short name. LookupError names those there are."""
    if name not in NAMES:
        raise LookupError(f"no constants of {name!r}; there are {', '.join(NAMES)}")
    full = recorded_name(name)
    if full is not None and full in with_constants():
        return measured(name, full)
    base = measured("H200", MEASURED)
    return scaled(name, base)


@functools.cache
def with_constants() -> frozenset:
    """The names of the GPUs on which the microbenchmarks ran."""
    return frozenset(one["gpu"] for one in results.everything() if one["name"] == "machine/clock")


@functools.cache
def recorded_name(name: str) -> str | None:
    """A GPU's name in results files, or None where nothing of it is recorded."""
    known, row = NAMES[name]
    names: set[str] = {one["gpu"] for one in results.everything()}
    for full in sorted(names):
        if full == known or (known is None and fits(full, row)):
            return full
    return None


def fits(full: str, row: str) -> bool:
    """Whether a GPU's name belongs to a row of the data sheets."""
    try:
        listed: str = likeness.listed(full)["gpu"]
        return listed == row
    except LookupError:
        return False


def with_article(name: str) -> str:
    """A GPU's name as it is spoken: an H200, a T4, an RTX 4090."""
    return f"{'an' if name[0] in 'AHR' else 'a'} {name}"


def exponent() -> float:
    """The exponent by which times of resources are joined."""
    found: float = json.loads(OVERLAP.read_text(encoding="utf-8"))["exponent"]
    return found


def measured(name: str, full: str) -> Gpu:
    """A GPU on which the microbenchmarks ran. full: its name in results files."""
    known = Constants(full)
    launch = known["launch/time"] / 1e3
    sms = results.known(full)["sms"]
    clock = known["clock"]
    line = known["l1/lines_32"] * 32
    rates = {
        "issue": known["fp32/rate"],
        "line": line,
        "pass": known["shared/read_8_ways"],
        "l2_read": known["l2/read_16_mib"],
        "l2_part_write": known["memory/sparse_write_32"],
    }
    for unit in ("fp32", "fp64", "multiply", "integer", "special", "convert", "shuffle"):
        rates[unit] = known[f"{unit}/rate"]
    rates["tensor"] = data_sheet(NAMES[name][1])["tensor16_tflops"] * 1e12
    for dtype in ("int", "float"):
        rates[f"one_{dtype}"] = known[f"atomics/{dtype}/one"]
        rates[f"line_{dtype}"] = known[f"atomics/{dtype}/32"] / LANES_A_SECTOR
        rates[f"lines_{dtype}"] = known[f"atomics/{dtype}/1024"] / LANES_A_SECTOR
        rates[f"each_{dtype}"] = known[f"atomics/{dtype}/each"] / LANES_A_SECTOR
        alone = 32 / known[f"shared_atomics/{dtype}/32"]
        together = 32 / known[f"shared_atomics/{dtype}/one"]
        rates[f"shared_{dtype}"] = 1 / alone
        rates[f"shared_more_{dtype}"] = 31 / (together - alone)
    for threads in (32, 64, 128, 256, 512, 1024):
        rates[f"blocks_{threads}"] = known[f"blocks/{threads}"]
    cycles = {
        "shared": known["shared/latency"],
        "memory": sms * 128 / known["memory/in_flight_1"] * clock,
        "l1": known.of("latency/64_kib"),
        "l2": known.of("latency/4096_kib"),
    }
    cycles["atomic"] = cycles["l2"]
    for threads in (32, 64, 128, 256, 512, 1024):
        for load in ("alone", "full"):
            cycles[f"barrier_{threads}_{load}"] = known[f"barrier/{threads}/{load}"]
    curves = {}
    for what in ("read", "write"):
        points = [(0.0, 0.0)]
        for mib in (32, 128, 1024):
            seconds = known[f"memory/{what}_{mib}_mib/time"] / 1e3
            points.append((mib * MIB, seconds - launch))
        curves[what] = tuple(points)
    return Gpu(
        name,
        "measured",
        CAPABILITY[name],
        sms,
        clock,
        L2[name] * MIB,
        launch,
        known["turn/256/time"] / 1e3,
        exponent(),
        rates,
        cycles,
        curves["read"],
        curves["write"],
    )


def scaled(name: str, base: Gpu) -> Gpu:
    """A GPU of which only data sheets are known."""
    sheet = data_sheet(NAMES[name][1])
    reference = data_sheet("H200")
    capability = CAPABILITY[name]
    sms = sheet["sms"] or SMS[name]
    units = FP32_UNITS.get(capability, FP32_UNITS_OF_SM)
    clock = sheet["fp32_tflops"] * 1e12 / (2 * units * sms)
    memory = sheet["bandwidth_gb_s"] / reference["bandwidth_gb_s"]
    work = sms * clock / (base.sms * base.clock)
    made = changed(base, name, work, memory, sms, clock)
    made.rates["fp32"] *= units / FP32_UNITS_OF_SM
    made.rates["tensor"] = sheet["tensor16_tflops"] * 1e12
    made.rates["fp64"] *= 2 * FP64_SHARE.get(capability, 1 / 2)
    return made


def with_bandwidth(name: str, times: float) -> Gpu:
    """A GPU whose memory is so many times as fast; one of another speed than its own is nobody's.

    LookupError as for `gpu`.
    """
    card = gpu(name)
    if times == 1:
        return card
    return dataclasses.replace(
        card,
        name=f"{name} with {times:g} times the bandwidth",
        reads=tuple((size, seconds / times) for size, seconds in card.reads),
        writes=tuple((size, seconds / times) for size, seconds in card.writes),
    )


def changed(base: Gpu, name: str, work: float, memory: float, sms: int, clock: float) -> Gpu:
    """`base` with other rates: of its SMs and its L2 by `work`, of its memory by `memory`."""
    rates = {key: value * work for key, value in base.rates.items()}
    for key in base.rates:
        if key.startswith(("one_", "line_", "blocks_")):  # not of all SMs, but of one place
            rates[key] = base.rates[key] * clock / base.clock
    return Gpu(
        name,
        "data sheet",
        CAPABILITY[name],
        sms,
        clock,
        L2[name] * MIB,
        base.launch,
        base.turn * base.clock / clock,
        base.exponent,
        rates,
        dict(base.cycles),
        tuple((size, seconds / memory) for size, seconds in base.reads),
        tuple((size, seconds / memory) for size, seconds in base.writes),
    )
