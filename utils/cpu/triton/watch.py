"""Puts the checks of `launches` before every load, store and atomic operation of a kernel."""

import dataclasses
import functools
import itertools

import numpy as np

from ... import sizes
from ..turns import turn
from .alone import chosen
from .launches import LAUNCH
from .mistakes import KernelMistake, here
from .turns import in_turns
from .undefined import unwritten

#: Failed tl.atomic_cas in a row after which a program waits for something that never comes
PATIENCE = 10_000
WARP, WARPS = 32, 4  # lanes of one; warps of a program, unless a launch says otherwise
#: One launch at a time: the interpreter's builder, what it patches and LAUNCH are the process's
_turn = turn()


def watch_launches(module):
    """Correct the interpreter's module."""
    import triton.language as tl

    _watch_grid(module)
    _note_launches(module)
    _watch_loads(module, tl)
    _watch_stores(module)
    _exchange_floats(module)
    _watch_atomics(module)
    _watch_assertions(module)
    _keep_errors(module)
    _refuse_floats_as_numbers(module)


# ---- the launch


def _watch_grid(module):
    Executor = module.GridExecutor
    to_host = Executor._init_args_hst
    convert = module._implicit_cvt
    enter = module.InterpreterBuilder.set_grid_idx
    set_dimensions = module.InterpreterBuilder.set_grid_dim

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
        LAUNCH.executor = self
        return on_host

    def implicit_convert(value):
        if isinstance(value, float):  # a tensor of one number, as an int is
            one = module.TensorHandle(np.array([value], np.float32), module.tl.float32)
            return module.tl.tensor(one, module.tl.float32)
        converted = convert(value)
        if hasattr(value, "data_ptr") and hasattr(converted, "handle"):
            storage = module._unwrap_tensor(value).untyped_storage()
            converted.handle.base = LAUNCH.at(storage.data_ptr())
        return converted

    def set_grid_dim(self, *grid):
        set_dimensions(self, *grid)
        LAUNCH.executor.fn = chosen(in_turns(LAUNCH.executor.fn, self), self)

    def set_grid_idx(self, x, y, z):
        enter(self, x, y, z)
        LAUNCH.enter(tuple(self.grid_dim), (x, y, z))

    Executor._init_args_hst = init_args
    module._implicit_cvt = implicit_convert
    module.InterpreterBuilder.set_grid_dim = set_grid_dim
    module.InterpreterBuilder.set_grid_idx = set_grid_idx
    for handle in (module.BlockPointerHandle, module.TensorDescHandle):
        handle.materialize_pointers = _with_base(handle.materialize_pointers)


def _note_launches(module):
    """Tell whoever asks of each launch (utils/sizes.py)."""
    Kernel = module.InterpretedFunction
    run = Kernel.run

    def noted(self, *args, grid, warmup, **named):
        if sizes.noting() and not warmup:
            given = dict(zip(self.arg_names, args, strict=False)) | named
            in_order = list(itertools.takewhile(given.__contains__, self.arg_names))
            options = {name: value for name, value in given.items() if name not in in_order}
            shape = _as_tuple(grid)
            shape = shape(given) if callable(shape) else shape
            threads = WARP * options.get("num_warps", WARPS)
            sizes.note(self, shape, threads, 0, [given[name] for name in in_order], options)
        return run(self, *args, grid=grid, warmup=warmup, **named)

    Kernel.run = noted


def _with_base(materialize):
    @functools.wraps(materialize)
    def pointers_of_block(self, *arguments):
        pointers, mask = materialize(self, *arguments)
        pointers.base = self.base.base
        return pointers, mask

    return pointers_of_block


def _refuse_floats_as_numbers(module):
    """Python's own functions, such as math.log, would take the whole part of a tensor of floats."""
    patch = module._patch_lang_core

    def patch_lang_core(lang, scope):
        patch(lang, scope)
        index = lang.tensor.__index__

        def whole(tensor):
            if tensor.dtype.is_floating():
                raise TypeError("must be real number, not tensor: Triton's functions take tensors")
            return index(tensor)

        scope.set_attr(lang.tensor, "__index__", whole)

    module._patch_lang_core = patch_lang_core


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
        function = self.fn
        self.grid = _as_tuple(self.grid)
        with _turn, np.errstate(all="ignore"):
            try:
                return call(self, *args, **kwargs)
            except module.InterpreterError as error:
                found = _cause(error, (KernelMistake, CompileTimeAssertionFailure))
                if found is None:
                    raise
                raise found.with_traceback(None) from None
            finally:
                self.fn = function

    Executor.__call__ = launched


def _as_tuple(grid):
    """A grid, or the function that gives it: Triton takes lists, its interpreter only tuples."""
    if callable(grid):
        return lambda arguments: _as_tuple(grid(arguments))
    return tuple(grid) if isinstance(grid, list) else grid


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
        LAUNCH.give_way()
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


def _named(value) -> str:
    """The name of a semantics or of a scope: ACQUIRE, CTA."""
    return str(value).rpartition(".")[2].upper()


def _kind(scope) -> str:
    """How an atomic operation of this scope touches an element: with scope="cta" no other program
    sees it as one step.
    """
    return "alone" if _named(scope) == "CTA" else "atomic"


def _order(addresses, sem, scope) -> None:
    """The order that an atomic operation forces; among one program's threads it needs none."""
    if _kind(scope) == "alone":
        return
    name = _named(sem)
    LAUNCH.clocks.synchronize(addresses, name in _ACQUIRES, name in _RELEASES)


def _exchange_floats(module):
    """tl.atomic_xchg of floats, which a GPU does and the interpreter does not: of their bits."""
    Builder = module.InterpreterBuilder
    rmw = Builder.create_atomic_rmw
    exchange = module._ir.ATOMIC_OP.XCHG

    def atomic_rmw(self, operation, pointers, values, *options):
        if operation != exchange or values.data.dtype.kind != "f":
            return rmw(self, operation, pointers, values, *options)
        bits = values.data.view(f"i{values.data.itemsize}")
        old = rmw(self, operation, pointers, module.TensorHandle(bits, values.dtype), *options)
        return module.TensorHandle(old.data.view(values.data.dtype), values.dtype.scalar)

    Builder.create_atomic_rmw = atomic_rmw


def _watch_atomics(module):
    Builder = module.InterpreterBuilder
    rmw, cas = Builder.create_atomic_rmw, Builder.create_atomic_cas

    def atomic_rmw(self, operation, pointers, values, mask, sem, scope):
        LAUNCH.check("atomic", _kind(scope), pointers, mask)
        LAUNCH.check_values("atomic", values, mask)
        allowed = np.broadcast_to(mask.data, pointers.data.shape).astype(bool)
        _order(pointers.data[allowed], sem, scope)
        LAUNCH.failed_swaps = 0
        LAUNCH.atomics += 1
        old = rmw(self, operation, pointers, values, mask, sem, scope)
        LAUNCH.give_way()
        return old

    def atomic_cas(self, pointers, expected, values, sem, scope):
        everywhere = module.TensorHandle(np.ones(pointers.data.shape, bool), expected.dtype)
        LAUNCH.check("atomic_cas", _kind(scope), pointers, everywhere)
        _order(pointers.data.ravel(), sem, scope)
        result = cas(self, pointers, expected, values, sem, scope)
        LAUNCH.atomics += 1
        LAUNCH.failed_swaps += 1
        if (result.data == expected.data).any():
            LAUNCH.failed_swaps = 0
        if LAUNCH.failed_swaps > PATIENCE:
            raise LAUNCH.fail(
                "deadlock",
                "waits for ever: what tl.atomic_cas waits for was to be written by a program that "
                "runs later, or one that never did it",
            )
        LAUNCH.give_way()
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
