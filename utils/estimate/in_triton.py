"""What one program of a Triton kernel asks for: run alone by Triton's interpreter, and counted.

Its tiles are dealt to threads by a compiler that is not asked. So what depends on how it deals them
is counted as for the layout that it prefers: neighbouring elements to neighbouring threads, 16
bytes to each at a time. Then

- a tile's loads and stores take a request for each 512 bytes that lie side by side, else one for
  each 32 elements;
- an operation on a tile is one instruction for each 32 of its elements; one on integers, which
  nearly always computes addresses and masks, is done once for each 16 bytes; one on a single number
  is done by every warp;
- a reduction takes shuffles within warps, shared memory and two barriers between them;
- `tl.dot` is done by tensor cores (of float32 as TF32, or by the fp32 units where it is told
  "ieee"); its factors come through shared memory, `num_stages` of them under way at once.

A program waits for its loads where the first operation on floats comes after them. What the program
before it on the same SM has read, and this one reads again, is still in L1 if there is room.
"""

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from triton.runtime import interpreter
from triton.runtime.errors import InterpreterError

from utils.cpu.triton.alone import alone
from utils.cpu.triton.launches import LAUNCH
from utils.occupancy import ceil_div
from utils.tracer import TooManyEvents
from utils.tracer.grouping import group
from utils.tracer.record import ALIGNMENT

from .model import Amounts

Tensors = Mapping[str, torch.Tensor]
WARP = 32
SECTOR, PIECE, LINE = 32, 64, 128
NUMBER = 4  # bytes of a float
VECTOR = 16  # bytes that a thread reads or writes at once
MOST_ELEMENTS = 2_000_000  # of a program that are read and written: two seconds
WARPS, STAGES = 4, 3  # Triton's own, unless a launch says others
SHUFFLES = 5  # from 32 values of a warp to one
REDUCE = 2 * (SHUFFLES * 24)  # cycles: within warps, and between them
BEGIN = 12  # instructions of a warp before its first load
REGISTERS = 24  # of a thread beside its part of tiles
LIVE = 2  # tiles of the largest size that are there at once
MOST_REGISTERS = 255
DIVISION = 8  # operations of an approximate quotient
SINE = 20
#: NumPy's function of an operation -> (operations on floats, on the special unit) of an element
COSTS: dict[object, tuple[int, int]] = {
    np.exp: (2, 1),
    np.exp2: (1, 1),
    np.log: (2, 1),
    np.log2: (1, 1),
    np.sqrt: (4, 1),
    np.sin: (SINE, 0),
    np.cos: (SINE, 0),
    np.divide: (DIVISION, 1),
}
#: bits of a factor of tl.dot -> how much longer a product takes than one of 16 bits
TIMES = {8: 0.5, 16: 1, 32: 2}


class Launched(Protocol):
    """What is needed of a `sampling.Launch`."""

    @property
    def kernel(self) -> Any: ...

    @property
    def named(self) -> dict: ...

    @property
    def threads(self) -> int: ...


class Counting:
    """What a program asks for, noted while it runs. It stands where the tracer's recorder does."""

    def __init__(self, launch: Launched) -> None:
        self.warps = ceil_div(launch.threads, WARP)
        self.stages = launch.named.get("num_stages", STAGES)
        self.amounts: Amounts = Counter()
        self.waits: Amounts = Counter(steps=BEGIN)
        #: (array, what) -> addresses of each operation
        self.touched: dict[tuple[str, str], list[np.ndarray]] = {}
        self.under_way: list[str] = []  # arrays of loads that nothing has waited for yet
        self.reads: list[np.ndarray] = []  # sectors of each load, in order
        self.largest = 0  # elements of a tile of floats
        self.factors = 0  # bytes of the factors of the largest tl.dot
        self.elements = 0
        self.inner = 0  # within a reduction, whose own operations are counted as one
        self.hottest: dict[str, Counter[int]] = {}
        self.begun = 0  # instructions at the last wait

    # ---- called by the interpreter's watch

    def note(self, kind: str, pointers: Any, mask: np.ndarray, size: int) -> None:
        """A load, a store or an atomic operation on a tile."""
        addresses = np.ascontiguousarray(pointers.data[mask]).astype(np.int64)
        self.elements += len(addresses)
        if self.elements > MOST_ELEMENTS:
            raise TooManyEvents(f"a program reads and writes more than {MOST_ELEMENTS:,} elements")
        what = {"read": "read", "write": "write"}.get(kind, "atomic")
        name = self.name_of(int(addresses[0]))
        self.touched.setdefault((name, what), []).append(addresses)
        sectors = np.unique(addresses // SECTOR)
        lines, requests = self.requests(addresses, size, sectors)
        a = self.amounts
        a[f"{what}_requests"] += requests
        a[f"{what}_lines"] += lines
        a[f"{what}_sectors"] += len(sectors)
        a[f"{what}_fewest"] += ceil_div(len(addresses) * size, SECTOR)
        a["access"] += requests
        if what == "read":
            self.reads.append(sectors)
            self.under_way.append(name)
        elif what == "write":
            a["whole_written"] += self.whole(addresses, size)
            self.wait()
        else:
            a["atomic_lanes"] += len(addresses)
            self.wait()
            self.waits["atomic"] += 1
            self.add_to(name, addresses)

    def note_values(self, values: object, mask: object) -> None:
        """What is written does not matter."""

    # ---- called by the operations

    def operate(
        self, result: np.ndarray, function: Callable | None, inputs: Iterable[np.ndarray]
    ) -> None:
        """An operation on tiles, or on single numbers."""
        if self.inner:
            return
        elements = np.size(result)
        is_float = any(np.asarray(one).dtype.kind == "f" for one in inputs)
        if not is_float:
            per_lane = VECTOR // NUMBER
            self.amounts["integer"] += max(self.warps, elements / WARP / per_lane)
            return
        self.wait()
        wide = any(np.asarray(one).dtype == np.float64 for one in inputs)
        floats, special = COSTS.get(function, (1, 0))
        instructions = max(self.warps, elements / WARP)
        self.amounts["fp64" if wide else "fp32"] += floats * instructions
        self.amounts["special"] += special * instructions
        self.largest = max(self.largest, elements)

    def reduce(self, data: np.ndarray, axis: int | None) -> None:
        """A reduction or a scan along an axis."""
        self.wait()
        data = np.asarray(data)
        rows = data.size // (data.shape[axis] if axis is not None else data.size)
        self.amounts["fp32"] += max(self.warps, data.size / WARP)
        self.amounts["shuffle"] += 2 * SHUFFLES * max(self.warps, rows)
        self.amounts["shared_passes"] += 2 * self.warps
        self.amounts["shared_fewest"] += 2 * self.warps
        self.amounts["barriers"] += 2 * self.warps
        self.waits["barriers"] += 2
        self.waits["shared"] += 1
        self.waits["steps"] += REDUCE

    def dot(self, a: np.ndarray, b: np.ndarray, bits: int, precision: object) -> None:
        """A product of tiles, [M, K] by [K, N]."""
        if self.stages > 1:
            self.wait(1 / (self.stages - 1))
        else:
            self.wait()
        macs = a.size * b.shape[-1]
        factors = (a.size + b.size) * bits // 8
        passes = factors / LINE
        self.factors = max(self.factors, factors)
        self.amounts["shared_passes"] += passes
        self.amounts["shared_fewest"] += passes
        self.amounts["barriers"] += self.warps
        self.waits["barriers"] += 1
        self.largest = max(self.largest, a.shape[-2] * b.shape[-1])
        if "ieee" in str(precision).lower() and bits == 32:
            self.by_threads(macs, a.shape[-2] * b.shape[-1], a.shape[-1])
            return
        self.amounts["tensor"] += 2 * macs * TIMES.get(bits, 1)

    def by_threads(self, macs: int, results: int, depth: int) -> None:
        """A product without tensor cores: a thread's results are a square, whose two sides it reads
        from shared memory at each step of the depth.
        """
        side = math.sqrt(results / (self.warps * WARP))
        read = 2 * side * depth * self.warps  # numbers of a lane, and so passes
        self.amounts["fp32"] += macs / WARP
        self.amounts["access"] += read * NUMBER / VECTOR
        self.amounts["shared_passes"] += read
        self.amounts["shared_fewest"] += read

    # ---- what they need

    def wait(self, share: float = 1.0) -> None:
        """Wait for the loads under way: all of them take as long as one."""
        issued = sum(self.amounts[name] for name in ("access", "fp32", "integer", "special"))
        self.waits["steps"] += (issued - self.begun) / self.warps
        self.begun = issued
        if self.under_way:
            self.waits[f"memory {self.under_way[-1]}"] += share
            self.under_way = []

    def name_of(self, address: int) -> str:
        """The tensor in which an address lies."""
        memory = LAUNCH.at(address)
        return memory.name if memory else "?"

    def requests(self, addresses: np.ndarray, size: int, sectors: np.ndarray) -> tuple[int, int]:
        """(lines, requests) of an operation."""
        lines = len(np.unique(addresses // LINE))
        if len(sectors) * SECTOR <= len(addresses) * size + 2 * SECTOR:  # they lie side by side
            return lines, max(1, ceil_div(len(addresses) * size, VECTOR * WARP))
        warp = np.arange(len(addresses)) // WARP
        numbers, first = group(warp, addresses // LINE)
        return len(first), ceil_div(len(addresses), WARP)

    def whole(self, addresses: np.ndarray, size: int) -> int:
        """Sectors of which each byte is written."""
        sectors = addresses // SECTOR
        return int((np.bincount(sectors - sectors.min()) * size >= SECTOR).sum())

    def add_to(self, name: str, addresses: np.ndarray) -> None:
        """Count the additions to each element."""
        before = self.hottest.setdefault(name, Counter())
        for address in addresses.tolist():
            before[address] += 1

    def totals(self) -> tuple[Amounts, Amounts]:
        """(amounts, waits) of the program."""
        self.wait()
        self.waits["steps"] += BEGIN
        a = self.amounts.copy()
        a["warps"] = self.warps
        a["jump"] = self.warps
        return a, self.waits


@contextlib.contextmanager
def counted_operations(counting: Counting) -> Iterator[None]:
    """Within this block the interpreter tells of its operations."""
    builder = interpreter.InterpreterBuilder
    kept = {}

    def replaced(owner: type, name: str, make: Callable[[Callable], Callable]) -> None:
        kept[owner, name] = getattr(owner, name)
        setattr(owner, name, make(getattr(owner, name)))

    def of_one(method: Callable) -> Callable:
        def unary(self: Any, arg: Any, op: Any) -> Any:
            result = method(self, arg, op)
            counting.operate(result.data, op, (arg.data,))
            return result

        return unary

    def of_two(method: Callable) -> Callable:
        def binary(self: Any, lhs: Any, rhs: Any, op: Any) -> Any:
            result = method(self, lhs, rhs, op)
            counting.operate(result.data, op, (lhs.data, rhs.data))
            return result

        return binary

    def of_three(method: Callable) -> Callable:
        def ternary(self: Any, lhs: Any, rhs: Any, other: Any, op: Any) -> Any:
            result = method(self, lhs, rhs, other, op)
            counting.operate(result.data, op, (rhs.data, other.data))
            return result

        return ternary

    def of_sum(method: Callable) -> Callable:
        def fma(self: Any, x: Any, y: Any, z: Any) -> Any:
            result = method(self, x, y, z)
            counting.operate(result.data, None, (x.data,))
            return result

        return fma

    def of_root(method: Callable) -> Callable:
        def rsqrt(self: Any, arg: Any) -> Any:
            result = method(self, arg)
            counting.operate(result.data, np.exp2, (arg.data,))
            return result

        return rsqrt

    def of_dot(method: Callable) -> Callable:
        def dot(self: Any, a: Any, b: Any, d: Any, precision: Any, most: Any) -> Any:
            counting.dot(a.data, b.data, a.dtype.primitive_bitwidth, precision)
            return method(self, a, b, d, precision, most)

        return dot

    def of_axis(method: Callable) -> Callable:
        def applied(self: Any, given: Any) -> Any:
            counting.reduce(given[0].handle.data, self.axis)
            counting.inner += 1
            try:
                return method(self, given)
            finally:
                counting.inner -= 1

        return applied

    replaced(builder, "unary_op", of_one)
    replaced(builder, "binary_op", of_two)
    replaced(builder, "ternary_op", of_three)
    replaced(builder, "create_fma", of_sum)
    replaced(builder, "create_rsqrt", of_root)
    replaced(builder, "create_dot", of_dot)
    replaced(interpreter.ReduceOps, "apply_impl", of_axis)
    replaced(interpreter.ScanOps, "apply_impl", of_axis)
    try:
        yield
    finally:
        for (owner, name), method in kept.items():
            setattr(owner, name, method)


# ---- a program of a launch


def zeros(shape: int | tuple, dtype: Any) -> torch.Tensor:
    """A tensor of zeros that begins where a GPU's would; only what is touched is really there."""
    bits = dtype if not isinstance(dtype, torch.dtype) else f"i{dtype.itemsize}"
    count = int(np.prod(shape, dtype=np.int64))
    size = count * np.dtype(bits).itemsize
    room = np.zeros(size + ALIGNMENT, np.uint8)
    first = -room.ctypes.data % ALIGNMENT
    made = torch.from_numpy(room[first : first + size].view(bits).reshape(shape))
    return made.view(dtype) if isinstance(dtype, torch.dtype) else made


def copied(arg: Any) -> Any:
    """A copy of a tensor that begins where a GPU's would; numbers as they are."""
    if not isinstance(arg, torch.Tensor):
        return arg
    if not arg.is_contiguous():
        return arg.clone()
    return zeros(tuple(arg.shape), arg.dtype).copy_(arg)


def program_of(
    launch: Launched, args: list, grid: tuple[int, int, int], number: int
) -> tuple[Counting, Tensors]:
    """(Counting, tensors by name) of one program of a launch, run alone.

    args: as the interpreter takes them. Raises KernelMistake, TooManyEvents for a long program, and
    InterpreterError for what goes wrong in Python.
    """
    x, rest = number % grid[0], number // grid[0]
    place = x, rest % grid[1], rest // grid[1]
    names = launch.kernel.arg_names
    tensors = {
        name: arg for name, arg in zip(names, args, strict=False) if isinstance(arg, torch.Tensor)
    }
    counting = Counting(launch)
    LAUNCH.recorder = counting
    try:
        with alone(grid, place), counted_operations(counting):
            launch.kernel[(1,)](*args, **launch.named)
    except InterpreterError as error:
        if isinstance(error.__cause__, TooManyEvents):
            raise error.__cause__ from None
        raise
    finally:
        LAUNCH.recorder = None
    return counting, tensors


def arrays_of(
    counting: Counting, tensors: Tensors
) -> dict[tuple[str, str], tuple[int, int, int, int]]:
    """(name, "read" or "write") -> bytes in pieces, bytes in sectors, pieces asked for, size."""
    arrays = {}
    for (name, kind), noted in counting.touched.items():
        each = [np.unique(addresses // PIECE) for addresses in noted]
        pieces = len(np.unique(np.concatenate(each))) * PIECE
        sectors = len(np.unique(np.concatenate(noted) // SECTOR)) * SECTOR
        size = tensors[name].numel() * tensors[name].element_size()
        for what in ("read", "write") if kind == "atomic" else (kind,):
            arrays[name, what] = pieces, sectors, sum(map(len, each)), size
    return arrays


def registers_of(counting: Counting) -> int:
    """Registers of a thread: its part of the tiles that are there at once, and some more."""
    of_tile = counting.largest / (counting.warps * WARP)
    return int(min(MOST_REGISTERS, REGISTERS + LIVE * of_tile))


def hottest_of(counting: Counting, tensors: Tensors) -> dict[str, tuple]:
    """Array -> as `sampling.Block` has it."""
    found = {}
    for name, adds in counting.hottest.items():
        tensor = tensors[name]
        kind = "float" if tensor.dtype.is_floating_point else "int"
        addresses = np.array(sorted(adds))
        found[name] = addresses, max(adds.values()), len(adds), kind, tensor.numel()
    return found
