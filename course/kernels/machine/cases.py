"""Recorded kernels that estimates are held against: their launches at the size they were timed at.

A kernel is the chapter's own cell, or the file's where it is a whole file. Which third is held out
was settled by name, before any estimate was compared with a time: see `is_held_out`.
"""

import ast
import hashlib
import json
import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
from numba import cuda, float32, int32

from course.chapters import CHAPTERS
from course.kernels.convolution import numba_classic
from course.kernels.matmul.numba_rungs import RUNGS as MATMUL
from course.kernels.reductions import scan_ladder, sum_ladder
from course.kernels.row_kernels import numba_softmax
from utils.estimate import Blank, Launch

THREADS = 256
SMS = 132  # of the recorded GPUs: grids that depend on it
HELD_OUT = 3  # of so many kernels one is held out
#: Kernels from which the exponent of the model follows; no error is stated of these
CALIBRATION = ("vector_add_block", "roofline/polynomial")


@dataclass(frozen=True)
class Growing:
    """make(size): a launch counted at three small sizes."""

    make: Callable[[int], Launch]
    size: int
    small: tuple


@dataclass(frozen=True)
class Case:
    """A recorded time `name`/time and what was launched for it.

    launches: one after the other. growing: launches(size) where blocks loop for long, with the real
    size and three small ones.
    """

    name: str
    family: str
    launches: tuple[Launch | Growing, ...] = ()
    growing: Callable[[int], Launch] | None = None
    size: int | None = None
    small: tuple | None = None
    also: tuple[Launch, ...] = field(default=())

    @property
    def held_out(self) -> bool:
        return is_held_out(self.name)

    @property
    def language(self) -> str:
        """ "cuda_c", "numba" or "triton". CUDA C alone is counted as it grows, launch by launch."""
        if self.family.endswith("in Triton"):
            return "triton"
        grows = self.launches and isinstance(self.launches[0], Growing)
        return "cuda_c" if grows else "numba"

    @property
    def calibrates(self) -> bool:
        return self.name.startswith(CALIBRATION)


def is_held_out(name: str) -> bool:
    """Whether a kernel belongs to the third that nobody looks at before the model is frozen.

    By its name's SHA-256 modulo HELD_OUT, so that neither its time nor its estimate had a say.
    """
    digest = hashlib.sha256(name.encode()).hexdigest()
    return int(digest, 16) % HELD_OUT == 0


# ---- kernels of chapters ------------------------------------------------------------------------


@cache
def chapter(name: str) -> SimpleNamespace:
    """All Numba kernels of a chapter's cells, by name; nothing else of the cells runs."""
    names = {"cuda": cuda, "np": np, "float32": float32, "int32": int32}
    path = next(one.path for one in CHAPTERS if one.key == name)
    content = json.loads(path.read_text(encoding="utf-8"))
    for cell in content["cells"]:
        source = "".join(cell["source"])
        is_code = cell["cell_type"] == "code" and not source.startswith("%")
        is_starter = cell["id"].startswith("start-")  # may have the name of the chapter's own
        if is_code and "@cuda.jit" in source and not is_starter:
            define(source, f"<{name}:{cell['id']}>", names)
    return SimpleNamespace(**names)


def define(source, filename, names):
    """Run a cell's functions with the numbers and imports before them, under a name with source."""
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    kept = [node for node in ast.parse(source).body if is_wanted(node)]
    exec(compile(ast.Module(kept, []), filename, "exec"), names)


def is_wanted(node):
    """A kernel or device function, a number, an import of Numba's or NumPy's."""
    if isinstance(node, ast.FunctionDef):
        return any("cuda.jit" in ast.unparse(one) for one in node.decorator_list)
    if isinstance(node, ast.ImportFrom):
        return node.module == "numba"
    return isinstance(node, ast.Import) or is_constant(node)


def is_constant(node):
    """An assignment of a number, or of several."""
    if not isinstance(node, ast.Assign):
        return False
    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    return all(isinstance(value, ast.Constant) for value in values)


def over(n, block=THREADS):
    """Blocks for n threads."""
    return -(-n // block)


# ---- the cases, a function per chapter ----------------------------------------------------------


def first_kernels():
    k = chapter("first_kernels")
    n = 1 << 25
    a = Blank(n)
    yield Case("vector_add/numba", "elements", (Launch(k.vector_add, over(n), THREADS, (a, a, a)),))
    for block in (8, 32, 64, 128, 256, 512, 1024):
        launch = Launch(k.vector_add, over(n, block), block, (a, a, a))
        yield Case(f"vector_add_block/{block}", "elements", (launch,))
    height, width = 384, 512
    arrays = Blank((height, width)), Blank((height, width, 3), np.uint8)
    grid = over(width, 16), over(height, 16)
    yield Case("grey/numba", "elements", (Launch(k.grey, grid, (16, 16), arrays),))
    alpha = np.float32(2.5)
    yield Case(
        "axpy/numba_a_thread_an_element",
        "elements",
        (Launch(k.axpy, over(n), THREADS, (a, alpha, a, a)),),
    )

    def axpy(size):
        return Launch(k.axpy, 64, THREADS, (Blank(size), alpha, Blank(size), Blank(size)))

    turn = 64 * THREADS
    yield Case("axpy/numba_64_blocks", "loops", (), axpy, n, (4 * turn, 8 * turn, 16 * turn))

    def batched(inner):
        arrays = Blank((64, 500, 400)), Blank((64, 500, inner)), Blank((64, inner, 400))
        return Launch(k.batched_matmul, (over(400, 16), over(500, 16), 64), (16, 16, 1), arrays)

    yield Case("batched_matmul/numba", "products", (), batched, 300, (32, 64, 96))


def memory():
    k = chapter("memory")
    n = 1 << 28
    a = Blank(n)
    yield Case("copy_ladder/numba", "elements", (Launch(k.copy, over(n), THREADS, (a, a)),))
    yield Case(
        "copy_ladder/numba_4_a_thread",
        "elements",
        (Launch(k.copy_four, over(n, 1024), THREADS, (a, a)),),
    )
    yield Case("add_ladder/numba", "elements", (Launch(k.vector_add, over(n), THREADS, (a, a, a)),))
    wide = 1 << 22
    for stride in (1, 2, 4, 8, 32):
        arrays = Blank(wide), Blank(32 * wide)
        launch = Launch(k.copy_stride, over(wide), THREADS, (*arrays, stride))
        yield Case(f"copy_stride/stride_{stride}", "patterns", (launch,))
    count = 1 << 24
    step = np.float32(1)
    yield Case(
        "layout/aos",
        "patterns",
        (Launch(k.move_aos, over(count), THREADS, (Blank((count, 4)), step)),),
    )
    yield Case(
        "layout/soa",
        "patterns",
        (Launch(k.move_soa, over(count), THREADS, (Blank((4, count)), step)),),
    )
    side = 1 << 14

    def rows(length):
        return Launch(k.row_sums, side // 32, 32, (Blank(side), Blank((side, length))))

    def columns(length):
        return Launch(k.column_sums, side // 32, 32, (Blank(side), Blank((length, side))))

    yield Case("sums/a_thread_a_row", "loops", (), rows, side, (128, 256, 384))
    yield Case("sums/a_thread_a_column", "loops", (), columns, side, (128, 256, 384))
    square = Blank((side, side))
    grid = side // 32, side // 8
    yield Case(
        "transpose_ladder/naive",
        "patterns",
        (Launch(k.transpose_naive, grid, (32, 8), (square, square)),),
    )
    for name, kernel in (("tile", k.transpose_tiled), ("tile_padded", k.transpose_padded)):
        launch = Launch(kernel, (side // 32, side // 32), (32, 8), (square, square))
        yield Case(f"transpose_ladder/{name}", "shared", (launch,))
    many = 1 << 24

    def total_of(rounds):
        def make(size):
            return Launch(k.total_of, 512, 128, (Blank(1), Blank(size), rounds))

        return make

    turn = 512 * 128
    yield Case(
        "use_1/already_there", "loops", (), total_of(1), many, (8 * turn, 12 * turn, 16 * turn)
    )


def synchronization():
    k = chapter("synchronization")
    n = 1 << 20
    names = {1: "one_counter", 32: "32_counters", 1024: "1_024_counters", n: "a_counter_for_each"}
    for spread, name in names.items():
        launch = Launch(k.add_spread, over(n), THREADS, (Blank(n, np.int32), n, spread))
        yield Case(f"atomic_contention/{name}", "atomics", (launch,))
    blocks, block = 4 * SMS, 512
    rng = np.random.default_rng(8)

    def histogram(kernel):
        def make(size):
            values = Blank(size, np.uint8)
            if size < 1 << 26:
                values = rng.integers(0, 256, size, dtype=np.uint8)
            return Launch(kernel, blocks, block, (Blank(256, np.int32), values))

        return make

    turn = blocks * block
    small = (4 * turn, 8 * turn, 12 * turn)
    big = 1 << 28
    yield Case(
        "histogram/numba_global_atomics", "atomics", (), histogram(k.histogram_global), big, small
    )
    yield Case(
        "histogram/numba_a_copy_for_each_block",
        "atomics",
        (),
        histogram(k.histogram_private),
        big,
        small,
    )


def profiling():
    k = chapter("profiling")
    m = 1 << 25
    a = Blank(m)
    yield Case(
        "roofline/vector_add", "elements", (Launch(k.vector_add, over(m), THREADS, (a, a, a)),)
    )
    n = 1 << 24

    def polynomial(terms):
        return Launch(k.polynomial, over(n), THREADS, (Blank(n), Blank(n), np.int32(terms)))

    for terms in (4, 64, 512):
        yield Case(f"roofline/polynomial_{terms}", "loops", (), polynomial, terms, (8, 16, 24))

    def matmul(inner):
        arrays = Blank((1024, 1024)), Blank((1024, inner)), Blank((inner, 1024))
        return Launch(k.matmul, (64, 64), (16, 16), arrays)

    yield Case("roofline/matmul", "products", (), matmul, 1024, (32, 64, 96))


def meet_the_gpu():
    k = chapter("meet_the_gpu")
    for walkers in (1, 32, 1024, 32_768, 131_072):
        made = partial(walk, k.walk_gpu, walkers)
        yield Case(f"walk/{walkers:_}_walkers", "walks", (), made, 1000, (16, 32, 48))


def walk(kernel, walkers, steps):
    """So many steps of each walker; the table is small where few are counted."""
    block = min(walkers, 128)
    few = 1 << 22
    table = Blank(1 << 27, np.int32)
    if steps < 1000:
        table = np.random.default_rng(4).permutation(few).astype(np.int32)
    places = (np.arange(walkers) * 997 % few).astype(np.int32)
    return Launch(kernel, over(walkers, block), block, (places, table, np.int32(steps)))


def reductions():
    for name, n in (("reduce", 1 << 26), ("reduce/ladder", 1 << 28)):
        for rung in sum_ladder.RUNGS:
            yield sum_case(f"{name}/{rung}/numba", rung, n)
    for name, n in (("scan", 1 << 26), ("scan/ladder", 1 << 28)):
        for rung in scan_ladder.RUNGS:
            yield Case(f"{name}/{rung}/numba", "scans", tuple(scan_launches(rung, n)))


def sum_case(name, rung, n):
    """A sum as `sum_ladder` launches it."""
    kernel = sum_ladder.RUNGS[rung].kernel
    out = Blank(1)
    if rung == "atomic":
        return Case(name, "atomics", (Launch(kernel, over(n), THREADS, (Blank(n), out)),))
    if rung in ("wide", "two_passes", "last_block"):
        blocks = min(64 * SMS, over(n, 4 * THREADS))

        def several(size):
            extra = (Blank(blocks), Blank(1, np.int32)) if rung == "last_block" else ()
            result = Blank(blocks) if rung == "two_passes" else out
            return Launch(kernel, blocks, THREADS, (Blank(size), result, *extra))

        turn = 8 * blocks * THREADS
        also = (Launch(kernel, 1, THREADS, (Blank(blocks), out)),) if rung == "two_passes" else ()
        return Case(name, "sums", (), several, n, (2 * turn, 3 * turn, 4 * turn), also)
    launches = []
    while n > 1:
        launches.append(Launch(kernel, over(n), THREADS, (Blank(n), Blank(over(n)))))
        n = over(n)
    return Case(name, "sums", tuple(launches))


def scan_launches(rung, n):
    """The launches of a scan as `scan_ladder` makes them."""
    kernel = scan_ladder.RUNGS[rung].kernel
    blocks = over(n)
    sums = Blank(blocks)
    if rung == "reduce_then_scan":
        if blocks > 1:
            yield Launch(kernel, blocks, THREADS, (Blank(n), sums))
            yield from scan_launches(rung, blocks)
        yield Launch(scan_ladder.scan_from_starts, blocks, THREADS, (Blank(n), Blank(n), sums))
        return
    yield Launch(kernel, blocks, THREADS, (Blank(n), Blank(n), sums))
    if blocks > 1:
        yield from scan_launches(rung, blocks)
        yield Launch(scan_ladder.add_starts, blocks, THREADS, (Blank(n), sums))


def matmul():
    for rung in MATMUL:
        sizes = (256, 512, 1024, 2048, 4096, 8192) if rung == "unsigned" else (4096,)
        for n in sizes:
            made = partial(product, rung, n)
            yield Case(f"matmul/fp32/{n}/numba_{rung}", "products", (), made, n, (32, 64, 96))


def product(rung, n, inner):
    """A rung's launch for C of n × n, the inner dimension free."""
    kernel, (rows, columns), threads = MATMUL[rung]
    grid = over(n, columns), over(n, rows)
    grid = grid[::-1] if rung == "naive" else grid
    arrays = Blank((n, n)), Blank((n, inner)), Blank((inner, n))
    return Launch(kernel, grid, threads, arrays, registers=registers_of(rung))


def registers_of(rung):
    """Registers that a rung needs at least: what a thread keeps of C, with addresses beside it."""
    return {"tile_1d": 40, "tile_2d": 128, "unsigned": 128}.get(rung, 32)


def convolution():
    side = 8192
    arrays = Blank((side, side)), Blank((side, side)), Blank((5, 5))
    grid = over(side, 32), over(side, 8)
    for kernel in (numba_classic.naive_2d, numba_classic.tiled_2d):
        name = kernel.py_func.__name__
        launch = Launch(kernel, grid, (32, 8), arrays)
        yield Case(f"conv/picture/5x5/{name}_numba", "shared", (launch,))


def fusion():
    elements, threads = 1 << 28, 512
    for topic, columns in (
        ("softmax_rungs", 16384),
        ("softmax_ladder/16384", 16384),
        ("softmax_ladder/4096", 4096),
    ):
        for rung in ("three_reads", "online", "one_read"):
            made = partial(softmax, rung, elements // columns, threads)
            between = "/" if topic == "softmax_rungs" else "_"
            name = f"{topic}/{rung}{between}numba"
            if rung == "one_read":  # a long block: it is unrolled
                small = (2 * threads, 3 * threads, 4 * threads)
                yield Case(name, "rows", (), made, columns, small)
            else:
                yield Case(name, "rows", (made(columns),))


def softmax(rung, rows, threads, columns):
    """A rung's launch for `rows` rows."""
    kernel = getattr(numba_softmax, rung)
    if rung == "one_read":
        kernel = kernel(columns, threads)
    return Launch(kernel, rows, threads, (Blank((rows, columns)), Blank((rows, columns))))


CHAPTERS_WITH_CASES = (
    meet_the_gpu,
    first_kernels,
    memory,
    synchronization,
    profiling,
    reductions,
    matmul,
    convolution,
    fusion,
)


def cases() -> list[Case]:
    """All of them, in the order of the chapters."""
    return [case for chapter_cases in CHAPTERS_WITH_CASES for case in chapter_cases()]
