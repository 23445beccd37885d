"""One launch of a kernel, watched: every load, store and atomic operation is checked first."""

import dataclasses
import functools
import math
from dataclasses import dataclass

import numpy as np

from utils.cpu.triton.mistakes import KernelMistake, count_of, here, mistake, named
from utils.cpu.triton.races import Clocks, History, conflict, note
from utils.cpu.triton.undefined import unwritten

#: Failed tl.atomic_cas in a row after which a program waits for something that never comes
PATIENCE = 10_000
_DID = {"read": "reads", "write": "writes", "atomic": "changes atomically"}


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


class Launch:
    """The running launch: its memories, its programs' clocks, where it is."""

    def __init__(self):
        self.memories: list[Memory] = []
        self.clocks = Clocks(1)
        self.grid = (1, 1, 1)
        self.program = None
        self.failed_swaps = 0
        self.work = {}  # program -> how many elements it touched

    def begin(self, tensors: dict) -> None:
        """A launch with these tensors, by the names of their arguments."""
        self.memories = []
        self.program = None
        self.failed_swaps = 0
        self.work = {}
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
        memory = self._check_inside(what, pointers, addresses, size)
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

    def _check_inside(self, what, pointers, addresses, size) -> Memory | None:
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
        raise self.fail(
            "outside",
            f"tl.{what} of {count_of(~inside, 'element')} outside the tensor: "
            f"the first is {where}. Guard it with mask=.",
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
            raise self.fail(
                "race",
                f"tl.{what} {_DID[kind]} {memory.place(address)}; "
                f"{named(self.program_of(other))} {_DID[did]} it, too, and nothing orders the two",
            )
        note(memory.history, self.clocks, kind, index)

    def check_values(self, what: str, values, mask) -> None:
        """Values that are stored were written by somebody."""
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


def watch_launches(module):
    """Correct the interpreter's module."""
    import triton.language as tl

    _watch_grid(module)
    _watch_loads(module, tl)
    _watch_stores(module)
    _watch_atomics(module)
    _watch_assertions(module)
    _keep_errors(module)


# ---- the launch


def _watch_grid(module):
    Executor = module.GridExecutor
    to_host = Executor._init_args_hst
    convert = module._implicit_cvt
    enter = module.InterpreterBuilder.set_grid_idx

    def tensors_of(name, value):
        if isinstance(value, tuple):
            for number, part in enumerate(value):
                yield from tensors_of(f"{name}[{number}]", part)
        elif hasattr(value, "base") and not hasattr(value, "data_ptr"):
            yield from tensors_of(name, value.base)
        elif hasattr(value, "data_ptr"):
            yield name, module._unwrap_tensor(value)

    def init_args(self, args, kwargs):
        on_host = to_host(self, args, kwargs)
        named_values = [*zip(self.arg_names, on_host[0], strict=False), *on_host[1].items()]
        found = [pair for name, value in named_values for pair in tensors_of(name, value)]
        LAUNCH.begin(dict(found))
        return on_host

    def implicit_convert(value):
        converted = convert(value)
        if hasattr(value, "data_ptr") and hasattr(converted, "handle"):
            storage = module._unwrap_tensor(value).untyped_storage()
            converted.handle.base = LAUNCH.at(storage.data_ptr())
        return converted

    def set_grid_idx(self, x, y, z):
        enter(self, x, y, z)
        LAUNCH.enter(tuple(self.grid_dim), (x, y, z))

    Executor._init_args_hst = init_args
    module._implicit_cvt = implicit_convert
    module.InterpreterBuilder.set_grid_idx = set_grid_idx
    for handle in (module.BlockPointerHandle, module.TensorDescHandle):
        handle.materialize_pointers = _with_base(handle.materialize_pointers)


def _with_base(materialize):
    @functools.wraps(materialize)
    def pointers_of_block(self, *arguments):
        pointers, mask = materialize(self, *arguments)
        pointers.base = self.base.base
        return pointers, mask

    return pointers_of_block


def _keep_errors(module):
    """A mistake, or a failed tl.static_assert, reaches the caller as it is.

    NumPy does not warn of what a GPU does silently.
    """
    from triton.compiler.errors import CompileTimeAssertionFailure

    Executor = module.GridExecutor
    call = Executor.__call__
    patch = module._patch_lang_core

    def static_assert(condition, message=""):
        if not condition:  # tl.constexpr, or a Python bool
            raise CompileTimeAssertionFailure(None, None, str(message))

    def patch_lang_core(lang, scope):
        patch(lang, scope)
        scope.set_attr(lang, "static_assert", static_assert)

    module._patch_lang_core = patch_lang_core

    def launched(self, *args, **kwargs):
        with np.errstate(all="ignore"):
            try:
                return call(self, *args, **kwargs)
            except module.InterpreterError as error:
                found = _cause(error, (KernelMistake, CompileTimeAssertionFailure))
                if found is None:
                    raise
                raise found.with_traceback(None) from None

    Executor.__call__ = launched


def _cause(error: BaseException | None, kinds: tuple) -> BaseException | None:
    """The first of these kinds among an error and what caused it."""
    while error is not None and not isinstance(error, kinds):
        error = error.__cause__
    return error


# ---- loads and stores


def _watch_loads(module, tl):
    Builder = module.InterpreterBuilder
    load = Builder.create_masked_load

    def masked_load(self, pointers, mask, other, *options, **named_options):
        LAUNCH.check("load", "read", pointers, mask)
        result = load(self, pointers, mask, other, *options, **named_options)
        shape = result.data.shape
        unread = ~np.broadcast_to(mask.data, shape).astype(bool)
        fresh = unwritten(result.data, result.dtype.scalar.is_floating())
        if fresh is not None and (fresh & ~unread).any():
            result.undefined = fresh & ~unread
            result.origin = f"the tensor was empty when {here()} read it"
        if other is None and unread.any():
            known = result.undefined if result.undefined is not None else False
            result.undefined = unread | known
            result.origin = f"{here()} has a mask and no other="
        elif other is not None and other.undefined is not None:
            known = result.undefined if result.undefined is not None else False
            result.undefined = (np.broadcast_to(other.undefined, shape) & unread) | known
            result.origin = other.origin
        return result

    Builder.create_masked_load = masked_load


def _watch_stores(module):
    Builder = module.InterpreterBuilder
    store = Builder.create_masked_store

    def masked_store(self, pointers, value, mask, *options, **named_options):
        LAUNCH.check("store", "write", pointers, mask)
        LAUNCH.check_values("store", value, mask)
        LAUNCH.check_lanes(pointers, value, mask)
        return store(self, pointers, value, mask, *options, **named_options)

    Builder.create_masked_store = masked_store


# ---- atomic operations

_ACQUIRES = ("ACQUIRE", "ACQUIRE_RELEASE")
_RELEASES = ("RELEASE", "ACQUIRE_RELEASE")


def _order(addresses, sem) -> None:
    """The order that an atomic operation of this semantics forces."""
    name = str(sem).rpartition(".")[2].upper()
    LAUNCH.clocks.synchronize(addresses, name in _ACQUIRES, name in _RELEASES)


def _watch_atomics(module):
    Builder = module.InterpreterBuilder
    rmw, cas = Builder.create_atomic_rmw, Builder.create_atomic_cas

    def atomic_rmw(self, operation, pointers, values, mask, sem, *options):
        LAUNCH.check("atomic", "atomic", pointers, mask)
        LAUNCH.check_values("atomic", values, mask)
        allowed = np.broadcast_to(mask.data, pointers.data.shape).astype(bool)
        _order(pointers.data[allowed], sem)
        LAUNCH.failed_swaps = 0
        return rmw(self, operation, pointers, values, mask, sem, *options)

    def atomic_cas(self, pointers, expected, values, sem, *options):
        everywhere = module.TensorHandle(np.ones(pointers.data.shape, bool), expected.dtype)
        LAUNCH.check("atomic_cas", "atomic", pointers, everywhere)
        _order(pointers.data.ravel(), sem)
        result = cas(self, pointers, expected, values, sem, *options)
        LAUNCH.failed_swaps += 1
        if (result.data == expected.data).any():
            LAUNCH.failed_swaps = 0
        if LAUNCH.failed_swaps > PATIENCE:
            raise LAUNCH.fail(
                "deadlock",
                "waits for ever: what tl.atomic_cas waits for was to be written by a program that "
                "runs later, or one that never did it",
            )
        return result

    Builder.create_atomic_rmw = atomic_rmw
    Builder.create_atomic_cas = atomic_cas


# ---- assertions


def _watch_assertions(module):
    """tl.device_assert, which a GPU only obeys with TRITON_DEBUG=1, is always on here."""

    def create_assert(self, condition, message):
        if not np.all(condition.data):
            raise LAUNCH.fail("assertion", f"tl.device_assert: {message}")

    Builder = module.InterpreterBuilder
    Builder.create_assert = create_assert
    options = module.interpreter_builder.options
    # its own check of overflow would also stop hashes, which wrap around on purpose
    module.interpreter_builder.options = dataclasses.replace(
        options, debug=True, sanitize_overflow=False
    )
