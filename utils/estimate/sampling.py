"""A few blocks of a launch, run on the CPU engine: what each asks of the machine.

Blocks of one launch are nearly always alike, so a launch of millions is counted from its first
block, its last and one in the middle. They run within the real grid, on arrays of the real shape
that hold zeros unless the caller gives others; memory that no sampled block touches is never
really there.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from utils.cpu.numba_cuda import KernelError, cpu_jit, observe, time_limit
from utils.cpu.numba_cuda.device_arrays import DeviceNDArray
from utils.cpu.numba_cuda.dispatcher import check_limits
from utils.cpu.numba_cuda.settings import only_blocks
from utils.cpu.triton import KernelMistake
from utils.engine import gpu
from utils.occupancy import ceil_div
from utils.tracer import TooManyEvents, TraceError, counts, is_triton
from utils.tracer.cuda_c import is_cuda_c, record_cuda_c
from utils.tracer.grouping import group
from utils.tracer.record import (
    ATOMIC,
    BARRIER,
    FIELDS,
    GRID_BARRIER,
    READ,
    WRITE,
    Memory,
    Recorder,
    Recording,
    check_kernel,
    whole,
)

from . import operations
from .life import Access, life, life_of_accesses
from .model import Amounts

#: A launch dimension
Three = tuple[int, int, int]
MAX_EVENTS = 400_000  # of one block, or a small launch of CUDA C: about two seconds
MOST_THREADS = 1 << 18  # of a small launch of CUDA C
SECONDS = 6
LONG = 50_000  # a block with more events stands for all
WARP = 32
SECTOR = 32
PIECE = 64  # bytes that memory moves at least
LINE = 128
NEVER = np.iinfo(np.int64).max
#: Sectors that a block touches before it comes back to one: L1 may hold so many for it
DISTANCES = (0, 64, 256, 1024, 4096)
DISTANCES_IN_TRITON = (*range(0, 2048, 256), *range(2048, 8193, 1024))  # of larger blocks
NEAR = 1024
ADDRESS = 3  # instructions of a CUDA C access beside itself
BEGIN = 8  # and of its beginning
UNREAD = 4  # instructions of a statement whose source nobody read
ONLY_WITHOUT = "a Triton kernel is counted on machines without a GPU, where its interpreter runs it"


#: In the source of a CUDA C kernel: what the model has no term for
NOT_MODELLED = {
    "tensor cores": re.compile(r"\b(wmma|wgmma|ldmatrix|tcgen05)\b|\bmma(_sync|\.sync)\b"),
    "asynchronous copies": re.compile(
        r"\bcp\.async|\bmemcpy_async\b|\b__pipeline_\w+|\bcuda::(pipeline|barrier|device)\b"
    ),
}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
OWN_FILE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


class Unknown(ValueError):
    """No estimate: the text says what cannot be known, and what may help."""


class NotAgain(Unknown):
    """A launch of CUDA C, made again to be counted, does not come to its end."""


@dataclass(frozen=True)
class Blank:
    """An array argument that holds zeros: `Blank((4096, 4096), np.float32)`.

    dtype: NumPy's, or for a Triton kernel PyTorch's.
    """

    shape: int | tuple
    dtype: Any = np.float32

    @property
    def nbytes(self) -> int:
        size = getattr(self.dtype, "itemsize", None)  # NumPy's classes have one of another kind
        size = size if isinstance(size, int) else np.dtype(self.dtype).itemsize
        return int(np.prod(self.shape, dtype=np.int64)) * size


@dataclass(frozen=True)
class Launch:
    """A launch of a Numba kernel: kernel[grid, block, 0, shared_bytes](*args).

    args: numbers, arrays (copied before they are used) or `Blank`s of the real shape.
    registers: of a thread, where known; 32 is what short kernels have. named: of a Triton kernel,
    its arguments by name: BLOCK=1024, num_warps=8; block: its threads, 32 for each warp.
    """

    kernel: Any
    grid: int | tuple
    block: int | tuple
    args: tuple
    shared_bytes: int = 0
    registers: int = 32
    named: dict = field(default_factory=dict)

    @property
    def blocks(self) -> int:
        return math.prod(whole(self.grid, "grid"))

    @property
    def threads(self) -> int:
        return math.prod(whole(self.block, "block"))


@dataclass
class Block:
    """What one block asks for.

    amounts: everything that adds up over blocks (see `amounts_of`).
    waits: what its busiest thread waits for (see `life`).
    arrays: (name, "read" or "write") -> bytes that memory moves for it, in pieces of PIECE; bytes
        in sectors; requests; bytes of the whole array.
    gathers: names of arrays whose indices come from memory.
    hottest: array -> addresses that are added to, additions to the most wanted one, how many
        addresses, "int" or "float", elements of the whole array.
    shared_bytes: static. events: how many the tracer noted. registers: of a thread, where they are
    counted; else those of the launch hold.
    """

    amounts: Amounts
    waits: Amounts
    arrays: dict[tuple[str, str], tuple[int, int, int, int]]
    hottest: dict[str, tuple]
    shared_bytes: int
    events: int = 0
    gathers: frozenset = frozenset()
    registers: int | None = None


def sampled(launch: Launch) -> list[tuple[int, Block]]:
    """(how many blocks it stands for, Block) for each block that was run.

    Raises Unknown for what the CPU engine cannot run so, TooManyEvents for long blocks.
    """
    grid = whole(launch.grid, "grid")
    block = whole(launch.block, "block")
    check_limits(grid, block, int(launch.shared_bytes))
    check_modelled(launch.kernel)
    if is_cuda_c(launch.kernel):
        raise TooManyEvents("a CUDA C kernel is counted at small sizes")
    count = launch.blocks
    typical = block_of(launch, grid, block, count // 2)
    if typical.events > LONG or count < 3:
        return [(count, typical)]
    ends = [block_of(launch, grid, block, number) for number in (0, count - 1)]
    return [(1, ends[0]), (count - 2, typical), (1, ends[1])]


def check_modelled(kernel: Any) -> None:
    """Raise Unknown for a kernel that does what the model has no term for."""
    if is_triton(kernel):
        if gpu():
            raise Unknown(ONLY_WITHOUT)
        return
    if not is_cuda_c(kernel):
        try:
            check_kernel(kernel)
        except TraceError as error:
            raise Unknown(f"it cannot be counted: {error}") from error
        return
    text = text_of(Path(kernel.path))
    for what, words in NOT_MODELLED.items():
        if words.search(text):
            raise Unknown(f"{kernel.path.name} uses {what}, for which the model has no term")


def text_of(path: Path) -> str:
    """A source file with those of its own that it includes, without comments."""
    text = COMMENT.sub("", path.read_text(encoding="utf-8"))
    for name in OWN_FILE.findall(text):
        if (path.parent / name).is_file():
            text += text_of(path.parent / name)
    return text


def middle(launch: Launch) -> Block:
    """The block in the middle of the grid alone."""
    check_modelled(launch.kernel)
    grid = whole(launch.grid, "grid")
    return block_of(launch, grid, whole(launch.block, "block"), launch.blocks // 2)


def block_of(launch: Launch, grid: Three, block: Three, number: int) -> Block:
    """Run one block and count."""
    if is_cuda_c(launch.kernel):
        return block_in_cuda_c(launch, grid, block, number)
    if is_triton(launch.kernel):
        return program_in_triton(launch, grid, number)
    function = getattr(launch.kernel, "py_func", launch.kernel)
    names = function.__code__.co_varnames
    ready = [argument(arg) for arg in launch.args]
    recorder = Recorder(MAX_EVENTS)
    fresh = cpu_jit(launch.kernel, signatures=getattr(launch.kernel, "signatures_given", None))
    try:
        with observe(recorder), time_limit(SECONDS), only_blocks([number]):
            fresh[grid, block, 0, launch.shared_bytes](*ready)
    except TooManyEvents:
        raise
    except (KernelError, IndexError) as error:
        said = str(error).strip().splitlines()[0]
        raise Unknown(f"a block alone does not come to its end: {said}") from error
    if recorder.outside:
        raise Unknown("it goes beyond the end of an array")
    recording = Recording(function.__name__, function, grid, block, recorder, {}, None)
    events = counts.Events(recording)
    types = dict(zip(names, map(operations.type_of_argument, launch.args), strict=False))
    try:
        statements = operations.statements_of(function, types)
    except (OSError, TypeError, SyntaxError) as error:
        raise Unknown(f"the kernel's source is not to be had: {error}") from error
    gathers = frozenset().union(*(one.gathers for one in statements.values()))
    waits = life(chain(events, statements), statements)
    return counted(events, launch, instructions(events, statements), waits, gathers)


def block_in_cuda_c(launch: Launch, grid: Three, block: Three, number: int) -> Block:
    """Run a small launch of a CUDA C kernel and count one block of it.

    Accesses, atomics and barriers are seen, the arithmetic between them is not: of that nothing is
    counted but what addresses need.
    """
    threads = math.prod(block)
    args = [host_argument(arg) for arg in launch.args]
    try:
        recording = record_cuda_c(
            launch.kernel,
            grid,
            block,
            args,
            launch.shared_bytes,
            max_threads=MOST_THREADS,
            limit=MAX_EVENTS,
        )
    except TooManyEvents:
        raise
    except TraceError as error:
        raise Unknown(f"it cannot be traced: {error}") from error
    if recording.error:
        said = str(recording.error).strip().splitlines()[0]
        raise NotAgain(f"a small launch of it does not come to its end: {said}")
    table = np.frombuffer(recording.recorder.events, np.int64).reshape(-1, FIELDS)
    mine = table[table[:, 1] // threads == number]
    recording.recorder.events = mine.tobytes()
    events = counts.Events(recording)
    waits = life_of_accesses(chain(events, {}))
    made = counted(events, launch, unseen_instructions(events, launch.threads), waits, frozenset())
    made.amounts["barriers"] = made.amounts["jump"] = waits["barriers"] * made.amounts["warps"]
    return made


def program_in_triton(launch: Launch, grid: Three, number: int) -> Block:
    """Run one program of a Triton kernel and count."""
    from triton.runtime.errors import InterpreterError

    from . import in_triton  # with PyTorch, which takes seconds to import

    args = [
        in_triton.zeros(arg.shape, arg.dtype) if isinstance(arg, Blank) else in_triton.copied(arg)
        for arg in launch.args
    ]
    try:
        made, tensors = in_triton.program_of(launch, args, grid, number)
        before = made
        if number and made.elements < LONG:
            before, _ = in_triton.program_of(launch, args, grid, number - 1)
    except (KernelMistake, InterpreterError) as error:
        said = str(error).strip().splitlines()[-1].strip()
        raise Unknown(f"a program alone does not come to its end: {said}") from error
    amounts, waits = made.totals()
    none = np.zeros(0, np.int64)
    earlier = none if before is made else np.concatenate([none, *before.reads])
    away = apart(np.concatenate([earlier, *made.reads]))[len(earlier) :]
    for distance in DISTANCES_IN_TRITON:
        amounts[f"l2_read_{distance}"] = int((away > distance).sum())
    return Block(
        amounts,
        waits,
        in_triton.arrays_of(made, tensors),
        in_triton.hottest_of(made, tensors),
        made.factors * made.stages,
        made.elements,
        registers=in_triton.registers_of(made),
    )


def host_argument(arg: Any) -> Any:
    """An argument of a CUDA C kernel as the CPU runtime takes it."""
    return np.zeros(arg.shape, arg.dtype) if isinstance(arg, Blank) else arg


def unseen_instructions(events: counts.Events, threads: int) -> Amounts:
    """What a CUDA C kernel's accesses and barriers need, by listings of nvcc's code."""
    numbers, _ = counts.requests(events, events.accesses("global", "shared"))
    accesses = int(numbers.max(initial=-1)) + 1
    integer = ADDRESS * accesses + BEGIN * ceil_div(threads, WARP)
    return Counter(access=accesses, integer=integer)


def argument(arg: Any) -> Any:
    """What the engine is given: zeros, or a copy."""
    if isinstance(arg, Blank):
        return DeviceNDArray.over(np.zeros(arg.shape, arg.dtype))
    if hasattr(arg, "copy_to_host"):
        return DeviceNDArray.over(np.array(arg.copy_to_host()))
    if isinstance(arg, np.ndarray) and arg.ndim:
        return DeviceNDArray.over(np.array(arg))
    return arg


def counted(
    events: counts.Events, launch: Launch, needed: Amounts, waits: Amounts, gathers: frozenset
) -> Block:
    """A Block of the events of one."""
    amounts = amounts_of(events)
    _, away = reuse(events)
    for distance in DISTANCES:
        amounts[f"l2_read_{distance}"] = int((away > distance).sum())
    amounts.update(needed)
    amounts["warps"] = ceil_div(launch.threads, WARP)
    arrays, hottest = touched(events)
    used = [events.memories[number] for number in np.unique(events.memory)]
    shared = {m.root: m.start + size_of(m) for m in used if m.space == "shared"}
    static = sum(shared.values())
    return Block(amounts, waits, arrays, hottest, static, len(events), gathers)


def size_of(memory: Memory) -> int:
    return int(np.prod(memory.shape)) * memory.dtype.itemsize


def amounts_of(events: counts.Events) -> Amounts:
    """Requests, lines, sectors, passes, atomics and barriers of all warps."""
    amounts: Amounts = Counter()
    chosen = events.accesses("global")
    numbers, first = counts.requests(events, chosen)
    sectors = counts.sectors(events, chosen, numbers)
    lines = counts.sectors(events, chosen, numbers, LINE)
    kinds = events.kind[first]
    asked = bytes_of(events, chosen, numbers)
    for kind, name in ((READ, "read"), (WRITE, "write"), (ATOMIC, "atomic")):
        mine = kinds == kind
        amounts[f"{name}_requests"] = int(mine.sum())
        amounts[f"{name}_lines"] = int(lines[mine].sum())
        amounts[f"{name}_sectors"] = int(sectors[mine].sum())
        amounts[f"{name}_fewest"] = int(-(-asked[mine] // SECTOR).sum())
    amounts["atomic_lanes"] = int((events.kind[chosen] == ATOMIC).sum())
    full = sectors * SECTOR <= asked
    amounts["whole_written"] = int(sectors[(kinds == WRITE) & full].sum())
    shared = events.accesses("shared")
    numbers, first = counts.requests(events, shared)
    ways, passes, fewest = counts.passes(events, shared, numbers)
    atomic = events.kind[first] == ATOMIC
    amounts["shared_requests"] = int((~atomic).sum())
    amounts["shared_passes"] = int(passes[~atomic].sum())
    amounts["shared_fewest"] = int(fewest[~atomic].sum())
    floats = np.array([m.dtype.kind == "f" for m in events.memories] or [False])
    of_float = floats[events.memory[first]]
    for mine, name in ((atomic & ~of_float, "int"), (atomic & of_float, "float")):
        amounts[f"shared_atomics_{name}"] = int(mine.sum())
        amounts[f"shared_atomics_{name}_more"] = int((ways[mine] - 1).sum())
    waits = np.isin(events.kind, (BARRIER, GRID_BARRIER))
    barriers = np.unique(events.epoch[waits] * events.warps_a_block + events.warp[waits])
    amounts["barriers"] = len(barriers)
    return amounts


def bytes_of(events: counts.Events, chosen: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Different bytes of each request."""
    if not len(chosen):
        return np.zeros(0, np.int64)
    found: np.ndarray = counts.unique_bytes(events, chosen, numbers)
    return found


def reuse(events: counts.Events) -> tuple[np.ndarray, np.ndarray]:
    """(request of each sector touched by a global read, sectors touched since it last was).

    Requests are those of the block in the order of warps in step, as `read_requests` counts them; a
    sector that was never touched before has NEVER.
    """
    chosen, numbers, _ = read_requests(events)
    if not len(chosen):
        return numbers, numbers
    request, root, piece = counts.pieces(events, chosen, numbers, SECTOR)
    _, once = group(request, root, piece)  # of a request each sector counts once, in order
    request, root, piece = request[once], root[once], piece[once]
    place, _ = group(root, piece)
    return request, apart(place)


def apart(places: np.ndarray) -> np.ndarray:
    """How many places lie between each one and the same one before it; NEVER where none was."""
    order = np.argsort(places, kind="stable")
    again = places[order][1:] == places[order][:-1]
    away = np.full(len(order), NEVER)
    away[order[1:][again]] = order[1:][again] - order[:-1][again]
    return away


def read_requests(events: counts.Events) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(global reads, the request of each, numbered in the order of warps in step)."""
    chosen = events.accesses("global")
    chosen = chosen[events.kind[chosen] == READ]
    chosen = chosen[np.lexsort((events.warp[chosen], events.step[chosen], events.epoch[chosen]))]
    columns = (events.warp, events.epoch, events.site, events.occurrence)
    numbers, first = group(*(column[chosen] for column in columns))
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return chosen, rank[numbers], first


def instructions(events: counts.Events, statements: operations.Statements) -> Amounts:
    """Instructions of all warps by class, from the lines that ran."""
    total: Amounts = Counter()
    runs = {(row.filename, row.line): row.runs for row in counts.activity(events)}
    for row in counts.branches(events):
        statement = statements.get((row.filename, row.line))
        if statement and statement.repeats:
            runs[row.filename, row.line] = row.runs
    for place, count in runs.items():
        statement = statements.get(place)
        if statement is None:
            total["integer"] += UNREAD * count
            continue
        for name, amount in statement.classes.items():
            total[name] += amount * count
    numbers, _ = counts.requests(events, events.accesses("global", "shared"))
    total["access"] += int(numbers.max(initial=-1)) + 1
    return total


def touched(events: counts.Events) -> tuple[dict, dict]:
    """(array -> bytes that are touched and bytes there are, array and element -> additions)."""
    arrays: dict[tuple[str, str], tuple[int, int, int, int]] = {}
    hottest: dict[str, tuple] = {}
    chosen = events.accesses("global")
    if not len(chosen):
        return arrays, hottest
    name, names = events.name_of_memory
    of_array = name[events.memory[chosen]]
    sizes = {m.name: size_of(m) for m in events.memories if m.space == "global"}
    for number, label in enumerate(names):
        mine = chosen[of_array == number]
        if not len(mine):
            continue
        for kinds, what in (((READ, ATOMIC), "read"), ((WRITE, ATOMIC), "write")):
            some = mine[np.isin(events.kind[mine], kinds)]
            if len(some):
                arrays[label, what] = pieces_of(events, some, sizes[label])
        atomics = mine[events.kind[mine] == ATOMIC]
        if len(atomics):
            element, first = group(events.address[atomics])
            adds = np.bincount(element)
            top = int(adds.argmax())
            dtype = events.memory_of(atomics[0]).dtype
            hottest[label] = (
                np.unique(events.address[atomics]),
                int(adds[top]),
                len(first),
                "float" if dtype.kind == "f" else "int",
                sizes[label] // dtype.itemsize,
            )
    return arrays, hottest


def pieces_of(events: counts.Events, chosen: np.ndarray, size: int) -> tuple[int, int, int, int]:
    """(bytes of memory that move, bytes in sectors, requests, size of the array)."""
    zeros = np.zeros(len(chosen), np.int64)
    pieces = counts.sectors(events, chosen, zeros, PIECE)[0] * PIECE
    sectors = counts.sectors(events, chosen, zeros)[0] * SECTOR
    requests, _ = counts.requests(events, chosen)
    return int(pieces), int(sectors), int(requests.max()) + 1, size


def chain(events: counts.Events, statements: operations.Statements) -> list[Access]:
    """What the busiest thread does, event by event, for `life`."""
    if not len(events):
        return []
    threads = np.bincount(events.thread)
    mine = np.flatnonzero(events.thread == int(threads.argmax()))
    in_l1 = np.zeros(len(events), bool)
    chosen, numbers, _ = read_requests(events)
    if len(chosen):
        request, away = reuse(events)
        misses = np.bincount(request, away > NEAR)
        in_l1[chosen] = misses[numbers] == 0
    ways = np.ones(len(events), np.int64)
    shared = events.accesses("shared")
    if len(shared):
        numbers, _ = counts.requests(events, shared)
        ways[shared] = counts.passes(events, shared, numbers)[0][numbers]
    return [event_of(events, i, in_l1, ways) for i in mine.tolist()]


def event_of(events: counts.Events, i: int, in_l1: np.ndarray, ways: np.ndarray) -> Access:
    """An event as `life` takes it."""
    kind, site = int(events.kind[i]), events.site_of(i)
    place = site.filename, site.line
    if kind not in (READ, WRITE, ATOMIC):
        return Access(kind, place)
    memory = events.memory_of(i)
    return Access(kind, place, memory.space, bool(in_l1[i]), int(ways[i]), memory.name)
