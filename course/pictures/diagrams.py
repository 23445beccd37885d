"""What hardware is made of, as diagrams: GPU, SM, memories, host and device, a grid on SMs.

Counts and sizes are those of this machine's GPU; without one those of a GPU from its data sheet or
of a recorded one, and each picture says whose they are.
"""

from dataclasses import dataclass

from course.pictures.memory import size_text
from utils import engine, hardware, results
from utils.hardware import FP32_UNITS, generations, memories
from utils.occupancy import PARTS, REGISTERS, limits
from utils.plots import BLOCK_COLOURS
from utils.plots.svg import FAINT, GREY, ON_COLOUR, Drawing, strong

WIDTH = 720  # pixels
BLUE, YELLOW, GREEN, PINK, ORANGE = BLOCK_COLOURS[:5]
ARROW = strong("#0072B2")
DATA_SHEET = "H100 SXM"  # of what is shown without a GPU
CAPABILITY = (9, 0)  # its compute capability


@dataclass(frozen=True)
class Facts:
    """A GPU: its SMs, compute capability, bytes of each memory on the whole chip, and whose."""

    whose: str
    sms: int
    capability: tuple[int, int]
    sizes: dict


def facts() -> Facts:
    """This machine's GPU, or one from a data sheet."""
    whose, sizes = memories(DATA_SHEET)
    whose = whose.split(":")[0].replace("\n", " ")
    if engine.has_gpu():
        this = hardware.machine()
        return Facts(whose, this.sms, this.gpu.compute_capability, sizes)
    chips = {chip["chip"]: chip for chip in generations()["chips"]}
    return Facts(whose, chips[f"NVIDIA {DATA_SHEET}"]["cores"], CAPABILITY, sizes)


def on_chip(this: Facts) -> int:
    """Bytes of shared memory and L1 on the whole chip, by either of their names."""
    return next(size for name, size in this.sizes.items() if "shared" in name)


def memory_text(size: int) -> str:
    """Bytes of global memory: in GB as a data sheet has them, in GiB as a driver does."""
    return f"{size // 10**9} GB" if size % 10**9 == 0 else f"{size / 2**30:.0f} GiB"


def says_whose(sheet, whose):
    """The last line of a picture."""
    sheet.text_from(0, sheet.height - 8, whose, size=12, colour=GREY)


# ---- a GPU

ACROSS = 22  # SMs in a row of the picture


def gpu(this: Facts | None = None):
    """A GPU from above: all its SMs, the L2 cache that they share, global memory outside."""
    this = this or facts()
    rows = -(-this.sms // ACROSS)
    pitch = 30
    high = rows * pitch
    l2 = size_text(this.sizes["L2 cache"])
    memory = memory_text(this.sizes["global memory"])
    alt = (
        f"A GPU: {this.sms} multiprocessors (SMs), one L2 cache of {l2} that all of them share, "
        f"and beside the chip {memory} of global memory, through which the host's data comes. "
        f"{this.whose}."
    )
    sheet = Drawing(WIDTH, high + 190, alt=alt)
    sheet.box(1, 24, WIDTH - 2, high + 76, line=GREY, rx=8)
    sheet.heading(0, 10, f"the chip: {this.sms} SMs")
    for number in range(this.sms):
        x = 12 + number % ACROSS * (WIDTH - 24) / ACROSS
        y = 34 + number // ACROSS * pitch
        sheet.box(x, y, 27, pitch - 5, fill=YELLOW if number else ORANGE, rx=3)
    sheet.text(26, 34 + (pitch - 5) / 2, "SM", size=11, colour=ON_COLOUR)
    sheet.named(12, high + 46, WIDTH - 24, 40, f"L2 cache, {l2}, shared by all SMs", GREEN)
    sheet.named(150, high + 126, WIDTH - 300, 34, f"global memory, {memory}", PINK)
    sheet.arrow(WIDTH / 2 - 8, high + 124, WIDTH / 2 - 8, high + 90, colour=ARROW)
    sheet.arrow(WIDTH / 2 + 8, high + 88, WIDTH / 2 + 8, high + 122, colour=ARROW)
    sheet.text(72, high + 143, "host ↔", size=13)
    says_whose(sheet, this.whose)
    return sheet


# ---- an SM


def sm(this: Facts | None = None):
    """A multiprocessor: its quarters, each with a scheduler, registers, lanes; shared memory."""
    this = this or facts()
    limit = limits(this.capability)
    units = FP32_UNITS.get(this.capability, 128)
    warps = limit.warps // PARTS
    registers = size_text(4 * REGISTERS // PARTS)
    shared = size_text(on_chip(this) / this.sms)
    if "shared memory" in this.sizes:  # a driver names only what can be shared of it
        shared = f"L1 cache and shared memory, up to {shared} shared"
    else:
        shared = f"L1 cache and shared memory, {shared}"
    alt = (
        f"An SM in {PARTS} equal parts. Each has a scheduler with places for {warps} warps, "
        f"{registers} of registers and {units // PARTS} fp32 lanes. "
        f"All share one memory: {shared}. {this.whose}."
    )
    sheet = Drawing(WIDTH, 300, alt=alt)
    sheet.box(1, 1, WIDTH - 2, 271, line=GREY, rx=8)
    wide = (WIDTH - 20) / PARTS
    for part in range(PARTS):
        _sm_part(sheet, 10 + part * wide, wide - 8, warps, registers, units // PARTS)
    sheet.named(14, 226, WIDTH - 28, 36, shared, GREEN)
    says_whose(sheet, f"one SM of {this.sms} · {this.whose}")
    return sheet


def _sm_part(sheet, x, width, warps, registers, lanes):
    """A quarter of an SM: scheduler, places for warps, registers, lanes."""
    sheet.named(x + 4, 10, width - 4, 26, "scheduler", ORANGE)
    sheet.text(x + width / 2, 50, f"{warps} warps wait here", size=12)
    gap = (width - 4) / 8
    for warp in range(warps):
        left = x + 4 + warp % 8 * gap
        sheet.box(left, 62 + warp // 8 * 14, gap - 3, 11, fill=FAINT, line=GREY, thick=0.5)
    sheet.named(x + 4, 96, width - 4, 30, f"registers, {registers}", BLUE)
    sheet.text(x + width / 2, 142, f"{lanes} fp32 lanes", size=12)
    across = min(lanes, 16)
    gap = (width - 4) / across
    for lane in range(lanes):
        left = x + 4 + lane % across * gap
        sheet.box(left, 154 + lane // across * 22, gap - 2, 18, fill=YELLOW, rx=2)
    sheet.arrow(x + width / 2, 200, x + width / 2, 222, colour=ARROW)


# ---- the memories

#: Name, the words for a size, who shares it, its colour, what its waits were recorded under
LEVELS = (
    ("registers", "registers", "one thread", BLUE, None),
    ("shared memory, L1", "shared", "a block; an SM", YELLOW, "latency/shared"),
    ("L2 cache", "L2", "all SMs", GREEN, "latency/16384_kib"),
    ("global memory", "global", "all SMs, the host copies", PINK, "latency/262144_kib"),
)


def hierarchy(this: Facts | None = None):
    """The memories as steps: the nearer, the smaller and the quicker; sizes of the whole chip."""
    this = this or facts()
    rows = []
    for name, word, who, colour, wait in LEVELS:
        size = next(bytes_ for key, bytes_ in this.sizes.items() if word in key)
        rows.append((name, size_text(size), who, colour, results.find(wait) if wait else None))
    waits = [entry for *_, entry in rows if entry]
    said = "; ".join(f"{name}: {size}, seen by {who}" for name, size, who, *_ in rows)
    sheet = Drawing(WIDTH, 290, alt=f"Memories, near to far: {said}. {this.whose}.")
    for step, (name, size, who, colour, wait) in enumerate(rows):
        wide = 190 + 80 * step
        y = 26 + 58 * step
        sheet.named(0, y, wide, 46, f"{name}, {size}", colour)
        words = who
        if wait:
            words += f" · {wait['value']:.0f} cycles"
        sheet.text_from(wide + 14, y + 23, words)
        if step:
            sheet.arrow(95, y - 1, 95, y - 11, colour=ARROW)
    sheet.heading(0, 10, "lanes of an SM")
    whose = f"sizes: {this.whose}"
    if waits:
        whose += f" · cycles a load waits: recorded on {waits[0]['gpu']}, {waits[0]['date'][:10]}"
    says_whose(sheet, whose)
    return sheet


# ---- host and device

STEPS = ("1 · copy in", "2 · launch", "3 · copy back")


def host_and_device():
    """Two computers in one: what the host does, over and over, to have the device compute."""
    alt = (
        "The host, a CPU with its memory, and the device, a GPU with a memory of its own. The host "
        "copies data to the device, launches a kernel there, and copies the result back."
    )
    sheet = Drawing(WIDTH, 210, alt=alt)
    for x, title, chip, memory in (
        (0, "host", "CPU", "its memory: NumPy arrays"),
        (WIDTH - 260, "device", "GPU: many threads", "its memory: device arrays"),
    ):
        sheet.heading(x, 10, title, size=15)
        sheet.box(x + 1, 24, 258, 180, line=GREY, rx=8)
        sheet.named(x + 14, 40, 232, 62, chip, YELLOW)
        sheet.named(x + 14, 128, 232, 62, memory, PINK)
        sheet.arrow(x + 122, 104, x + 122, 126, colour=ARROW)
        sheet.arrow(x + 138, 126, x + 138, 104, colour=ARROW)
    left, right = 250, WIDTH - 250
    for step, y, ends in zip(
        STEPS, (146, 70, 178), ((left, right), (left, right), (right, left)), strict=True
    ):
        sheet.arrow(ends[0], y, ends[1], y, colour=ARROW, thick=2, head=10)
        sheet.text(WIDTH / 2, y - 12, step)
    return sheet


def late_error():
    """Host and device in time: a kernel fails after its launch, and when the host hears of it."""
    alt = (
        "The host launches a kernel and asks for an error: there is none. The kernel fails later, "
        "on the device. cudaDeviceSynchronize, which waits for it, is the first to say so."
    )
    sheet = Drawing(WIDTH, 158, alt=alt)
    for y, who in ((46, "host"), (130, "device")):
        sheet.heading(0, y, who, size=15)
    sheet.named(70, 24, 80, 44, "launch", YELLOW, size=15)
    sheet.named(154, 24, 180, 44, "cudaGetLastError()", YELLOW, size=15)
    sheet.named(338, 24, 262, 44, "cudaDeviceSynchronize()", PINK, size=15)
    sheet.named(250, 108, 300, 44, "the kernel, until it fails", ORANGE, size=15)
    sheet.arrow(150, 69, 250, 107, colour=ARROW, thick=2)
    sheet.arrow(550, 107, 600, 69, colour=ARROW, thick=2)
    sheet.text(244, 10, "no error", size=15)
    sheet.text(600, 10, "illegal memory access", size=15, colour=strong("#B03A00"))
    return sheet


# ---- a card, and modules on a board

SPEED = 60  # GB/s that a pixel of a road's width stands for
CHIP, MEMORY, BETWEEN_THEM, MODULES = 52, 50, 24, 4  # pixels wide; modules that are drawn


def roads(card: dict, module: dict, pcie: float, nvlink: float):
    """A PCIe card beside modules on one board: their roads to memory, neighbours and CPU.

    card, module: what the table of GPUs says of them; pcie, nvlink: GB/s in one direction.
    """
    own = [f"{gpu['bandwidth_gb_s']:,.0f} GB/s" for gpu in (card, module)]
    alt = (
        f"Roads as wide as they are fast. A card: {own[0]} to its own memory, {pcie} GB/s over "
        f"PCIe to the CPU. A module: {own[1]} to its own memory, {nvlink} GB/s over NVLink to its "
        f"neighbours on the board, {pcie} GB/s over PCIe to the CPU."
    )
    sheet = Drawing(WIDTH, 276, alt=alt)
    sheet.heading(0, 44, "PCIe card", size=15)
    sheet.heading(176, 10, "SXM modules on a board", size=15)
    sheet.named(176, 28, WIDTH - 176, 32, "NVLink switches", GREEN, size=15)
    sheet.named(0, 212, WIDTH, 34, "CPU and its memory", YELLOW, size=15)
    _roads_of(sheet, 0, card, pcie)
    for number in range(MODULES):
        _roads_of(sheet, 176 + 139 * number, module, pcie, nvlink)
    for x, words in ((0, own), (176, own[1:])):
        sheet.text_from(x + 60, 84, words[0], size=15)
        sheet.text_from(x + 34, 194, f"{pcie} GB/s", size=15)
    sheet.text_from(WIDTH - 90, 84, f"{nvlink} GB/s", size=15)
    says_whose(sheet, "the wider a road, the faster; PCIe and NVLink: in one direction")
    return sheet


def _roads_of(sheet, x, gpu, pcie, nvlink=0):
    """A GPU with its memory beside it, on roads in proportion to their GB/s."""
    middle = x + CHIP / 2
    roads_up_down = ((60, 104, nvlink), (168, 212, pcie))
    for top, bottom, speed in roads_up_down:
        wide = speed / SPEED
        sheet.box(middle - wide / 2, top, wide, bottom - top, fill=ARROW)
    wide = gpu["bandwidth_gb_s"] / SPEED
    sheet.box(x + CHIP, 136 - wide / 2, BETWEEN_THEM, wide, fill=ARROW)
    sheet.named(x, 104, CHIP, 64, "GPU", ORANGE, size=15)
    sheet.named(x + CHIP + BETWEEN_THEM, 104, MEMORY, 64, "HBM", PINK, size=15)


# ---- a grid on SMs

SHOWN = 24  # SMs, more than these would be too small to read


def grid_on_sms(blocks: int, sms: int, at_once: int = 1):
    """Blocks of a grid on SMs, in turns: a row is an SM's place, a column a turn.

    at_once: blocks that an SM holds. It is drawn as if all blocks took equally long, and as if the
    next blocks started together. ValueError for more SMs than can be read.
    """
    if sms > SHOWN:
        raise ValueError(f"{sms} SMs are too many to draw; {SHOWN} is the most")
    places = sms * at_once
    turns = -(-blocks // places)
    busy = blocks / (turns * places)
    alt = (
        f"{blocks} blocks on {sms} SMs, {at_once} at once on each: {turns} turns; {busy:.0%} of "
        "the places are taken, since the last turn is not full."
        if blocks % places
        else f"{blocks} blocks on {sms} SMs, {at_once} at once on each: {turns} full turns."
    )
    row, left = 26, 70
    wide = min(64, (WIDTH - left) / turns)
    sheet = Drawing(WIDTH, places * row + sms * 6 + 50, alt=alt)
    for place in range(places):
        y = 24 + place * row + place // at_once * 6
        if place % at_once == 0:
            sheet.text_from(0, y + at_once * row / 2, f"SM {place // at_once}")
        for turn in range(turns):
            block = turn * places + place % at_once * sms + place // at_once
            _place(sheet, left + turn * wide, y, wide - 3, row - 3, block, blocks)
    sheet.text_from(left, 10, "time: one turn after another →", size=12, colour=GREY)
    says_whose(sheet, f"{turns} turns, {busy:.0%} of the places taken")
    return sheet


def _place(sheet, x, y, width, height, block, blocks):
    """A place on an SM during a turn: a block with its number, or nobody."""
    place = x, y, width, height
    colour = BLOCK_COLOURS[block % len(BLOCK_COLOURS)]
    if block < blocks and width > 16:
        sheet.named(*place, block, colour, size=11, rx=3)
    else:
        sheet.box(*place, fill=colour if block < blocks else FAINT, rx=3)


# ---- a block's life on an SM. The cycles are made up; the order of events is a GPU's

BEGINS, LOADS, WAITS, ADDS, STORES = "begins", "loads", "waits", "adds", "stores"
INSTRUCTIONS = {LOADS, ADDS, STORES}
#: What a warp of `out[i] = a[i] + b[i]` does in each cycle
LIFE = [BEGINS] * 4 + [LOADS] * 2 + [WAITS] * 24 + [ADDS, STORES]
LIFE_COLOURS = {BEGINS: YELLOW, LOADS: BLUE, WAITS: FAINT, ADDS: GREEN, STORES: PINK}
WARPS = 2  # of a block


def lives(at_once: int, blocks: int) -> list[tuple[int, int, int, str, int]]:
    """(place, block, warp, what, cycle): what each warp of a grid does, on one SM.

    A scheduler issues one instruction per cycle, to the oldest block's warps first. A block begins
    where a place is free, and leaves it when its last warp is done.
    """
    told, here, following, cycle = [], {}, 0, 0
    while here or following < blocks:
        for place in range(at_once):
            if place not in here and following < blocks:
                here[place] = following, [0] * WARPS
                following += 1
        told += [(*who, cycle) for who in _a_cycle(here)]
        here = {place: each for place, each in here.items() if min(each[1]) < len(LIFE)}
        cycle += 1
    return told


def _a_cycle(here: dict):
    """(place, block, warp, what) of all warps, which go on by a step unless it is not their turn.

    here: place -> (block, the step of each warp).
    """
    is_issued = False
    for place, (block, steps) in sorted(here.items(), key=lambda item: item[1][0]):
        for warp, step in enumerate(steps):
            if step == len(LIFE):
                continue
            is_instruction = LIFE[step] in INSTRUCTIONS
            has_turn = not (is_instruction and is_issued)
            is_issued |= is_instruction
            steps[warp] += has_turn
            yield place, block, warp, LIFE[step] if has_turn else WAITS


def block_lives(at_once: int = 1, blocks: int = 6):
    """Blocks on one SM in time: each warp's strip, from its block's start to its last store."""
    told = lives(at_once, blocks)
    cycles = 1 + max(cycle for *_, cycle in told)
    busy = len({cycle for *_, what, cycle in told if what in INSTRUCTIONS}) / cycles
    said = f"{at_once} at once: {blocks} blocks are done after {cycles} cycles"
    alt = f"{said}; in {busy:.0%} of the cycles an instruction is issued"
    left, top, strip = 70, 34, 13
    tall = WARPS * strip + 6
    wide = (WIDTH - left) / (blocks * (len(LIFE) + WARPS))
    sheet = Drawing(WIDTH, top + at_once * tall + 24, alt=alt)
    for n, (what, colour) in enumerate(LIFE_COLOURS.items()):
        sheet.box(left + 90 * n, 4, 14, 14, fill=colour, line=GREY, thick=0.5)
        sheet.text_from(left + 90 * n + 19, 11, what, size=12)
    for place in range(at_once):
        sheet.text_from(0, top + place * tall + strip - 1, f"place {place}", size=12)
    for place, _, warp, what, cycle in told:
        corner = left + cycle * wide, top + place * tall + warp * strip
        sheet.box(*corner, wide, strip - 2, fill=LIFE_COLOURS[what])
    begins = {(block, place): cycle for place, block, _, _, cycle in reversed(told)}
    for (block, place), cycle in begins.items():
        at, y = left + cycle * wide, top + place * tall
        sheet.line(at, y - 1, at, y + WARPS * strip - 1, thick=1.5)
        end = left + max(cycle for _, b, _, _, cycle in told if b == block) * wide
        sheet.text(end - 10 * wide, y + strip - 1, f"block {block}", size=11)
    says_whose(sheet, alt)
    return sheet


THREAD, BETWEEN = 48, 24  # pixels: a thread, from one block to the next


def places(blocks, threads, indices):
    """The threads of a small grid in a row, block beside block: what each says of its place.

    blocks, threads, indices: for each thread its block's number, its own in the block, and its
    global index; arrays of the same length, as a kernel filled them.
    """
    rows = [tuple(map(int, row)) for row in zip(blocks, threads, indices, strict=True)]
    rows.sort(key=lambda row: row[2])
    last_block, last_thread, last = (max(column) for column in zip(*rows, strict=True))
    alt = (
        f"{last_block + 1} blocks side by side, each with threads 0 to {last_thread}; below them "
        f"the global index runs from 0 to {last} without a gap."
    )
    width = THREAD * len(rows) + BETWEEN * last_block
    sheet = Drawing(width + 2, 136, alt=alt)
    for block, thread, index in rows:
        left = 1 + THREAD * index + BETWEEN * block
        colour = BLOCK_COLOURS[block % len(BLOCK_COLOURS)]
        if thread == 0:
            wide = THREAD * (last_thread + 1)
            sheet.text(left + wide / 2, 12, f"block {block}", font_weight="bold")
            sheet.box(left, 26, wide, 44, line=GREY, thick=2)
        sheet.named(left + 3, 29, THREAD - 6, 38, thread, colour, size=15)
        sheet.arrow(left + THREAD / 2, 72, left + THREAD / 2, 90, colour=ARROW)
        sheet.text(left + THREAD / 2, 104, index, size=15, font_weight="bold")
    sheet.text(
        1, 120, "above: the thread's number in its block; below: its index", anchor="start", size=12
    )
    return sheet


# ---- SMs that have work

SM_SIDE, SM_ROW = 15, 12  # pixels an SM, SMs in a row


def with_work(launches, sms: int):
    """For each launch the SMs of a GPU, coloured where they have a block.

    launches: {name: blocks}. Blocks go to free SMs first, as the hardware places them.
    """
    said = "; ".join(f"{name}: {min(blocks, sms)}" for name, blocks in launches.items())
    rows = -(-sms // SM_ROW)
    pitch = SM_SIDE * SM_ROW + 50
    width = pitch * len(launches) + 40
    alt = f"Of {sms} SMs have a block: {said}."
    sheet = Drawing(width, rows * SM_SIDE + 54, alt=alt)
    for column, (name, blocks) in enumerate(launches.items()):
        left = column * pitch
        sheet.heading(left, 10, name)
        rows_and_columns = [divmod(number, SM_ROW) for number in range(sms)]
        places = [(left + SM_SIDE * x, 24 + SM_SIDE * y) for y, x in rows_and_columns]
        sheet.cells(places[:blocks], SM_SIDE - 2, fill=ORANGE)
        sheet.cells(places[blocks:], SM_SIDE - 2, fill=FAINT)
        words = f"{min(blocks, sms)} of {sms} SMs have a block"
        sheet.text_from(left, sheet.height - 12, words, size=12)
    return sheet


# ---- who may call whom

#: From and to: functions by where they run, and what the call is
CALLS = (
    ("__host__", "__global__", "<<< >>>"),
    ("__host__", "__host__", "call"),
    ("__global__", "__device__", "call"),
    ("__device__", "__device__", "call"),
)


def who_calls_whom():
    """Functions of host and device, and an arrow for each way in which one may call the other."""
    said = "; ".join(f"{one} calls {other} ({how})" for one, other, how in CALLS)
    sheet = Drawing(WIDTH, 222, alt=f"Who may call whom: {said}.")
    for x, wide, title in ((0, 250, "on the host"), (330, 390, "on the device")):
        sheet.heading(x, 10, title, size=15)
        sheet.box(x + 1, 26, wide - 2, 190, line=GREY, rx=8)
    sheet.named(20, 60, 130, 44, "__host__", YELLOW, size=15)
    sheet.named(350, 60, 150, 44, "__global__", ORANGE, size=15)
    sheet.named(560, 60, 140, 44, "__device__", BLUE, size=15)
    sheet.named(
        20, 150, 680, 44, "__host__ __device__: compiled once for each side", GREEN, size=15
    )
    sheet.arrow(150, 82, 348, 82, colour=ARROW, thick=2)
    sheet.text(249, 68, "<<< >>>", font_weight="bold")
    sheet.arrow(500, 82, 558, 82, colour=ARROW, thick=2)
    for x, wide in ((20, 130), (560, 140)):  # each may call its like
        middle = x + wide / 2
        sheet.line(middle - 30, 58, middle - 30, 42, colour=ARROW, thick=2)
        sheet.line(middle - 30, 42, middle + 30, 42, colour=ARROW, thick=2)
        sheet.arrow(middle + 30, 42, middle + 30, 59, colour=ARROW, thick=2)
    for x in (85, 425, 630):
        sheet.arrow(x, 105, x, 148, colour=ARROW, thick=2)
    return sheet


# ---- from a source file to machine code


def from_c_to_chip(this: Facts | None = None):
    """What nvcc makes of a .cu file, and what a driver makes of it on a newer GPU."""
    this = this or facts()
    level = f"sm_{this.capability[0]}{this.capability[1]}"
    alt = (
        "nvcc splits vector_add.cu. The host's half goes through the C++ compiler, the device's "
        f"half becomes PTX and then SASS for {level}. The program holds host code, PTX and SASS; "
        "on a newer GPU the driver makes SASS for that one from the PTX."
    )
    sheet = Drawing(WIDTH, 222, alt=alt)
    sheet.named(0, 76, 120, 44, "vector_add.cu", PINK)
    sheet.named(180, 20, 330, 44, "C++ compiler: the host's machine code", YELLOW)
    sheet.named(180, 132, 90, 44, "PTX", BLUE)
    sheet.named(350, 132, 160, 44, f"SASS for {level}", GREEN)
    sheet.box(570, 20, 149, 156, line=GREY, thick=2, rx=8)
    sheet.text(645, 98, "the program", size=14, font_weight="bold")
    sheet.text(150, 40, "host", size=12, colour=GREY)
    sheet.text(150, 160, "device", size=12, colour=GREY)
    sheet.text(310, 126, "ptxas", size=12, colour=GREY)
    arrows = (
        (120, 90, 178, 52),
        (120, 106, 178, 144),
        (270, 154, 348, 154),
        (510, 42, 568, 42),
        (510, 154, 568, 154),
        (225, 176, 225, 192),
    )
    for ends in arrows:
        sheet.arrow(*ends, colour=ARROW, thick=2)
    sheet.text(
        0,
        208,
        "the PTX goes along: a newer GPU's driver makes its own SASS of it at the program's start",
        anchor="start",
    )
    return sheet


# ---- where a thread's own numbers are

NUMBERS = 32  # floats of the chapter's array


def local_memory(this: Facts | None = None):
    """An array of a thread's own: in registers beside the lanes, or far away in local memory."""
    this = this or facts()
    frame = 4 * NUMBERS
    alt = (
        f"With known indices the {NUMBERS} numbers of v are {NUMBERS} registers beside the lane. "
        f"With an unknown index they are {frame} bytes of local memory, which is global memory "
        f"with an address for each thread, reached through L1 and L2. {this.whose}."
    )
    sheet = Drawing(WIDTH, 250, alt=alt)
    sheet.heading(0, 10, "v[31 - k], unrolled")
    _numbered(sheet, 0, 24, "r", BLUE)
    sheet.text_from(0, 86, "registers of the SM: each index is a name")
    sheet.heading(0, 124, "v[(k + shift) % 32]")
    steps = (
        ("lane", 60, ORANGE),
        ("L1 of the SM", 130, YELLOW),
        (f"L2, {size_text(this.sizes['L2 cache'])}", 130, GREEN),
    )
    left = 0
    for name, wide, colour in steps:
        sheet.named(left, 138, wide, 34, name, colour)
        sheet.arrow(left + wide + 2, 155, left + wide + 26, 155, colour=ARROW)
        left += wide + 28
    sheet.heading(left + 4, 155, f"local memory: {frame} bytes")
    _numbered(sheet, 0, 186, "", PINK)
    says_whose(sheet, f"each number has an address in global memory · {this.whose}")
    return sheet


def _numbered(sheet, left, top, letter, colour):
    """An array's numbers as a row of cells."""
    wide = (WIDTH - left) / NUMBERS
    for number in range(NUMBERS):
        x = left + number * wide
        sheet.named(x, top, wide - 2, 40, f"{letter}{number}", colour, size=11, rx=3)
