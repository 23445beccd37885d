"""The running launch of a kernel: what is checked before each of its loads, stores and atomics."""

import ast
import math
from dataclasses import dataclass

import numpy as np

from .mistakes import KernelMistake, count_of, here, mistake, named
from .races import Clocks, History, conflict, note

_DID = {
    "read": "reads {}",
    "write": "writes {}",
    "atomic": "changes {} atomically",
    "alone": 'with scope="cta" changes {}',
}
_ONE_PROGRAM = '. scope="cta" makes it atomic among the threads of one program only'


@dataclass
class Memory:
    """A tensor argument's memory: [first, end), and the argument's name."""

    name: str
    first: int
    end: int
    size: int  # bytes of an element
    history: History

    def place(self, address: int) -> str:
        """Which element an address is."""
        element = (int(address) - self.first) // self.size
        return f"element {element} of {self.name}, which has {(self.end - self.first) // self.size}"


def _has_a_mask(what: str, line: str) -> bool:
    """Whether a line gives this operation a mask; one of another operation in it does not count."""
    try:
        calls = [node for node in ast.walk(ast.parse(line.strip())) if isinstance(node, ast.Call)]
    except SyntaxError:  # a part of a statement
        return "mask" in line
    own = [call for call in calls if getattr(call.func, "attr", "") == what]
    positional = {"load": 2, "store": 3}.get(what, 3)
    return any(
        len(call.args) >= positional or "mask" in [keyword.arg for keyword in call.keywords]
        for call in own
    )


class Launch:
    """The running launch: its memories, its programs' clocks, where it is."""

    def __init__(self):
        self.memories: list[Memory] = []
        self.clocks = Clocks(1)
        self.grid = (1, 1, 1)
        self.program = None
        self.executor = None  # the interpreter's
        self.failed_swaps = 0
        self.work = {}  # program -> how many elements it touched
        self.atomics = 0  # operations
        self.turns = None  # where programs take turns: `turns.Turns`
        self.is_alone = False  # whether one program runs alone: `alone`
        self.recorder = None  # of the tracer, while it watches (utils/tracer/triton.py)

    def begin(self, tensors: dict) -> None:
        """A launch with these tensors, by the names of their arguments."""
        self.memories = []
        self.program = None
        self.failed_swaps = 0
        self.is_alone = False
        self.work = {}
        self.atomics = 0
        for name, tensor in tensors.items():
            storage = tensor.untyped_storage()
            first, count = storage.data_ptr(), storage.nbytes()
            if any(memory.first == first for memory in self.memories):
                continue
            size = tensor.element_size()
            history = History(first, math.ceil(count / size), size)
            self.memories.append(Memory(name, first, first + count, size, history))

    def enter(self, grid: tuple, program: tuple) -> None:
        """The next program of the grid."""
        if grid != self.grid or self.program is None:
            self.grid = grid
            self.clocks = Clocks(grid[0] * grid[1] * grid[2])
        self.program = program
        x, y, z = program
        self.clocks.begin((x * grid[1] + y) * grid[2] + z)

    def give_way(self) -> None:
        """After a load or an atomic operation: others may run before what is made of it."""
        if self.turns is not None:
            self.turns.give_way()

    def program_of(self, number: int) -> tuple:
        """A program's place in the grid."""
        rest, z = divmod(number, self.grid[2])
        return (*divmod(rest, self.grid[1]), z)

    def at(self, address: int) -> Memory | None:
        """The memory that an address lies in."""
        return next((m for m in self.memories if m.first <= address < m.end), None)

    def fail(self, kind: str, what: str) -> KernelMistake:
        """A mistake of the running program at this line."""
        return mistake(kind, what, self.program)

    # ---- checks

    def check(self, what: str, kind: str, pointers, mask) -> None:
        """Addresses are defined, inside, and ordered after what other programs did there."""
        mask = np.broadcast_to(mask.data, pointers.data.shape).astype(bool)
        self._check_defined(what, pointers, mask)
        addresses = np.ascontiguousarray(pointers.data[mask])
        if not addresses.size:
            return
        self.work[self.program] = self.work.get(self.program, 0) + addresses.size
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        if self.recorder is not None:
            self.recorder.note(kind, pointers, mask, size)
        memory = self._check_inside(what, pointers, addresses, size, mask)
        if self.is_alone:
            return
        for part, inside in self._parts(memory, addresses):
            self._check_order(what, kind, part, inside, size)

    def _check_defined(self, what: str, pointers, mask: np.ndarray) -> None:
        if pointers.undefined is not None and (pointers.undefined & mask).any():
            raise self.fail(
                "undefined", f"tl.{what} with an address that nobody wrote: {pointers.origin}"
            )
        if pointers.wrapped is not None and (pointers.wrapped & mask).any():
            raise mistake(
                "overflow",
                f"the offset of a tl.{what} does not fit in int32 here, and wraps around: "
                "make one factor int64 first, with .to(tl.int64)",
                self.program,
                pointers.wrapped_at,
            )

    def _check_inside(self, what, pointers, addresses, size, mask) -> Memory | None:
        """The memory that all addresses lie in, or None where they lie in several."""
        base = pointers.base
        candidates = [base] if base is not None else self.memories
        inside = np.zeros(addresses.shape, bool)
        for memory in candidates:
            inside |= (addresses >= memory.first) & (addresses + np.uint64(size) <= memory.end)
        if inside.all():
            return base
        outside = int(addresses[~inside][0])

        def distance(memory):
            return min(abs(outside - memory.first), abs(outside - memory.end))

        nearest = min(candidates, key=distance, default=None)
        where = nearest.place(outside) if nearest else "no tensor"
        cure = "Guard it with mask=."
        if not mask.all() or _has_a_mask(what, here().text):
            cure = "The mask lets it through: is the mask wrong, or the address (a row's length)?"
        raise self.fail(
            "outside",
            f"tl.{what} of {count_of(~inside, 'element')} outside the tensor: "
            f"the first is {where}. {cure}",
        )

    def _parts(self, memory, addresses):
        """(memory, the addresses that lie in it), for each."""
        if memory is not None:
            yield memory, addresses
            return
        for one in self.memories:
            inside = (addresses >= one.first) & (addresses < one.end)
            if inside.any():
                yield one, addresses[inside]

    def _check_order(self, what, kind, memory, addresses, size) -> None:
        index = memory.history.elements(addresses, size)
        found = conflict(memory.history, self.clocks, kind, index)
        if found:
            element, other, did = found
            address = memory.first + element * memory.history.grain
            says = (
                f"tl.{what} {_DID[kind].format(memory.place(address))}; "
                f"{named(self.program_of(other))} {_DID[did].format('it')}, too, and nothing "
                "orders the two"
            )
            raise self.fail("race", says + (_ONE_PROGRAM if "alone" in (kind, did) else ""))
        note(memory.history, self.clocks, kind, index)

    def check_values(self, what: str, values, mask) -> None:
        """Values that are stored were written by somebody."""
        if self.recorder is not None:
            shape = np.shape(values.data)
            self.recorder.note_values(values, np.broadcast_to(mask.data, shape).astype(bool))
        if values.undefined is None:
            return
        shape = np.shape(values.data)
        mask = np.broadcast_to(mask.data, shape).astype(bool)
        bad = np.broadcast_to(values.undefined, shape) & mask
        if bad.any():
            raise self.fail(
                "undefined",
                f"tl.{what} of {count_of(bad, 'value')} that nobody wrote: {values.origin}",
            )

    def check_lanes(self, pointers, values, mask) -> None:
        """No two lanes of one store write different values to one place."""
        shape = pointers.data.shape
        mask = np.broadcast_to(mask.data, shape).astype(bool)
        addresses = pointers.data[mask]
        written = np.broadcast_to(values.data, shape)[mask]
        order = np.argsort(addresses, kind="stable")
        same = np.diff(addresses[order]) == 0
        if not same.any():
            return
        raw = np.ascontiguousarray(written[order])
        bits = raw.view(np.uint8).reshape(raw.size, -1)
        differ = same & (bits[1:] != bits[:-1]).any(axis=1)
        if differ.any():
            address = int(addresses[order][1:][differ][0])
            memory = self.at(address)
            raise self.fail(
                "race",
                f"tl.store writes {count_of(differ, 'element')} more than once, with different "
                f"values: the first is {memory.place(address) if memory else 'unknown'}",
            )


LAUNCH = Launch()
