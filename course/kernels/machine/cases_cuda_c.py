"""Recorded CUDA C kernels that estimates are held against, at three small sizes each.

The CPU runtime runs a small launch whole, so every kernel is counted as it grows; sizes are such
that a middle block of the small launch does what one of the real launch does.
"""

import json
from functools import cache, partial

import numpy as np

from course.chapters import CHAPTERS
from course.kernels.machine.cases import SMS, THREADS, Case, Growing, over
from course.kernels.reductions import kernels as reductions
from utils import cuda_c
from utils.estimate import Blank, Launch
from utils.files import ROOT, write_whole

FOLDER = ROOT / "build" / "estimates"
BLOCKS = (8, 16, 24)  # of a small launch
WIDE_BLOCKS = 64 * SMS  # of sums whose threads take several elements


@cache
def written(chapter: str, file: str):
    """The module of a file that a chapter's cell writes."""
    path = next(one.path for one in CHAPTERS if one.key == chapter)
    head = f"%%writefile build/{file}\n"
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if source.startswith(head):
            FOLDER.mkdir(parents=True, exist_ok=True)
            write_whole(FOLDER / file, source.removeprefix(head) + "\n")
            return cuda_c.load(FOLDER / file)
    raise LookupError(f"{chapter} writes no {file}")


def elements(name, family, make, size, each=THREADS):
    """A kernel whose blocks take `each` elements and do not loop."""
    return Case(name, family, (Growing(make, size, tuple(each * b for b in BLOCKS)),))


def first_kernels():
    add = written("first_kernels", "vector_add.cu").vector_add
    n = 1 << 25

    def adds(size):
        return Launch(add, over(size), THREADS, (*[Blank(size)] * 3, np.int32(size)))

    yield elements("vector_add/cuda_c", "elements", adds, n)
    axpy = written("first_kernels", "axpy.cu").axpy
    alpha = np.float32(2.5)

    def each(size):
        args = Blank(size), alpha, Blank(size), Blank(size), np.int32(size)
        return Launch(axpy, over(size), THREADS, args)

    def few(size):
        args = Blank(size), alpha, Blank(size), Blank(size), np.int32(size)
        return Launch(axpy, 64, THREADS, args)

    yield elements("axpy/cuda_c_a_thread_an_element", "elements", each, n)
    turn = 64 * THREADS
    yield Case("axpy/cuda_c_64_blocks", "loops", (Growing(few, n, (2 * turn, 4 * turn, 6 * turn)),))
    grey = written("first_kernels", "grey.cu").grey

    def picture(height):
        width = 512 if height == 384 else 64
        args = Blank((height, width)), Blank((height, width, 3), np.uint8)
        sizes = np.int32(height), np.int32(width)
        return Launch(grey, (over(width, 16), over(height, 16)), (16, 16), (*args, *sizes))

    yield Case("grey/cuda_c", "elements", (Growing(picture, 384, (32, 64, 96)),))
    product = written("first_kernels", "batched_matmul.cu").batched_matmul

    def batched(inner):
        real = inner == 300
        batch, rows, columns = (64, 500, 400) if real else (1, 48, 32)
        arrays = (
            Blank((batch, rows, columns)),
            Blank((batch, rows, inner)),
            Blank((batch, inner, columns)),
        )
        grid = over(columns, 16), over(rows, 16), batch
        return Launch(product, grid, (16, 16, 1), (*arrays, *map(np.int32, (rows, inner, columns))))

    yield Case("batched_matmul/cuda_c", "products", (Growing(batched, 300, (32, 64, 96)),))


def memory():
    copies = written("memory", "copy.cu")
    n = 1 << 28
    kernels = {
        "copy_ladder/cuda_c_float": (copies.copy1, 256),
        "copy_ladder/cuda_c_float4": (copies.copy_wide, 1024),
        "copy_ladder/cuda_c_4_float4": (written("memory", "copy4.cu").copy4, 4096),
    }
    for name, (kernel, a_block) in kernels.items():
        yield elements(name, "elements", partial(copying, kernel, a_block), n, a_block)
    add4 = written("memory", "add.cu").add4

    def adds(size):
        return Launch(add4, over(size, 2048), THREADS, (*[Blank(size)] * 3, np.int32(size)))

    yield elements("add_ladder/cuda_c_2_float4", "elements", adds, n, 2048)
    padded = written("memory", "transpose.cu").transpose_padded
    wide = written("memory", "transpose_wide.cu").transpose_wide
    side = 1 << 14
    make = partial(transposing, padded, 32, (32, 8), side)
    yield Case("transpose_ladder/cuda_c_padded", "shared", (Growing(make, side, (64, 128, 192)),))
    make = partial(transposing, wide, 64, 512, side)
    yield Case("transpose_ladder/cuda_c_wide", "shared", (Growing(make, side, (128, 192, 256)),))


def copying(kernel, a_block, size):
    return Launch(kernel, over(size, a_block), THREADS, (Blank(size), Blank(size), np.int32(size)))


def transposing(kernel, tile, block, side, height):
    """A matrix of `height` rows; of a small one two tiles lie side by side."""
    width = side if height == side else 2 * tile
    arrays = Blank((width, height)), Blank((height, width))
    grid = width // tile, height // tile
    return Launch(kernel, grid, block, (*arrays, np.int32(height), np.int32(width)))


def profiling():
    adds = written("profiling", "vector_adds.cu")
    shapes = {
        "one_thread": (lambda n: 1, 1, (1000, 2000, 3000)),
        "one_block": (lambda n: 1, THREADS, (2048, 4096, 6144)),
        "many_blocks": (over, THREADS, (2048, 4096, 6144)),
    }
    for name, (grid, block, small) in shapes.items():
        make = partial(adding, getattr(adds, name), grid, block)
        yield Case(f"vector_adds/{name}", "few threads", (Growing(make, 1 << 20, small),))


def adding(kernel, grid, block, n):
    return Launch(kernel, grid(n), block, (*[Blank(n)] * 3, np.int32(n)))


def sums():
    module = reductions.load("sum_ladder.cu")
    for topic, n in (("reduce", 1 << 26), ("reduce/ladder", 1 << 28)):
        atomic = partial(summing, module.sum_atomic, lambda size: 1)
        yield elements(f"{topic}/atomic/cuda_c", "atomics", atomic, n)
        for rung in ("divergent", "conflicts", "sequential", "shuffle"):
            make = partial(summing, getattr(module, f"sum_{rung}"), over)
            launches, left = [], n
            while left > 1:
                launches.append(Growing(make, left, tuple(THREADS * b for b in BLOCKS)))
                left = over(left)
            yield Case(f"{topic}/{rung}/cuda_c", "sums", tuple(launches))
        turns = n // (WIDE_BLOCKS * THREADS)
        make = partial(sharing, module.sum_wide, turns)
        yield Case(f"{topic}/wide/cuda_c", "sums", (Growing(make, turns, (16, 32, 48)),))


def summing(kernel, out, n):
    return Launch(kernel, over(n), THREADS, (Blank(n), np.int64(n), Blank(out(n))))


def sharing(kernel, real, turns):
    """Each thread takes `turns` elements; a small launch has fewer blocks."""
    blocks = WIDE_BLOCKS if turns == real else 8
    n = blocks * THREADS * turns
    return Launch(kernel, blocks, THREADS, (Blank(n), np.int64(n), Blank(1)))


def scans():
    module = reductions.load("scan_ladder.cu")
    kernels = {
        "hillis_steele": module.hillis_steele,
        "blelloch": module.blelloch,
        "shuffles": module.scan_blocks,
    }
    for topic, n in (("scan", 1 << 26), ("scan/ladder", 1 << 28)):
        for rung, kernel in kernels.items():
            launches = tuple(scanning(kernel, module.add_starts, n))
            yield Case(f"{topic}/{rung}/cuda_c", "scans", launches)


def scanning(kernel, add_starts, n):
    """The launches of a scan as `scan_ladder` makes them."""
    small = tuple(THREADS * b for b in BLOCKS)
    yield Growing(partial(scan_launch, kernel), n, small)
    if over(n) > 1:
        yield from scanning(kernel, add_starts, over(n))
        yield Growing(partial(start_launch, add_starts), n, small)


def scan_launch(kernel, n):
    args = Blank(n), Blank(n), np.int64(n), Blank(over(n))
    return Launch(kernel, over(n), THREADS, args)


def start_launch(kernel, n):
    return Launch(kernel, over(n), THREADS, (Blank(n), np.int64(n), Blank(over(n))))


def cases() -> list[Case]:
    """All of them, in the order of the chapters."""
    chapters = first_kernels, memory, profiling, sums, scans
    return [case for chapter_cases in chapters for case in chapter_cases()]
