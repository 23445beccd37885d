"""Recorded Triton kernels that estimates are held against.

Options of a launch are those that `deal` of each file gives, or that the chapter's cell launches
with. Rows that are taken in pieces are left out where the bench's sweep chose how.
"""

from collections.abc import Iterator
from functools import partial

import torch
import triton

from course.kernels.machine.cases import SMS, Case, Growing
from course.kernels.matmul import in_triton
from course.kernels.tiles import layer_norm, softmax
from utils.estimate import Blank, Launch

ELEMENTS = 1 << 28  # of a matrix of rows
COLUMNS = (1024, 4096, 16384, 65536)
WARP = 32


def launch(kernel, grid, args, **named) -> Launch:
    """A launch of a Triton kernel with its arguments by name."""
    return Launch(kernel, grid, WARP * named.get("num_warps", 4), args, named=named)


def rows() -> Iterator[Case]:
    turn = layer_norm.PROGRAMS_AN_SM * SMS  # rows at a time, where programs stay
    for columns in COLUMNS:
        count = ELEMENTS // columns
        soft = of_softmax(columns, count)
        if soft.blocks < count and columns > softmax.KEPT:  # long programs
            soft = Growing(partial(of_softmax, columns), count, (turn, 2 * turn, 3 * turn))
        for name, made in (("softmax", soft), ("layernorm", of_layer_norm(columns, count))):
            yield Case(f"triton/{name}/{columns}/triton", "rows in Triton", (made,))
    for columns in (1024, 4096):
        small = (4 * turn, 6 * turn, 8 * turn)
        grown = Growing(partial(backward, columns), ELEMENTS // columns, small)
        launches = grown, parts_of(columns)
        yield Case(f"triton/layernorm_backward/{columns}/triton", "rows in Triton", launches)


def of_softmax(columns, rows) -> Launch:
    x = Blank((rows, columns))
    options = softmax.deal(columns)
    if "PIECE" not in options:
        grid = triton.cdiv(rows, options["ROWS"])
        return launch(softmax.softmax_rows, grid, (x, x, rows, columns), **options)
    kept = options.get("KEPT", options["PIECE"])
    grid = min(rows, options["programs"] * SMS) if "programs" in options else rows
    named = softmax.in_pieces(options)
    return launch(softmax.softmax_in_pieces, grid, (x, x, rows, columns), KEPT=kept, **named)


def of_layer_norm(columns, rows) -> Launch:
    x = Blank((rows, columns))
    options = layer_norm.deal(columns)
    arrays = x, Blank(rows), Blank(rows), x, Blank(columns), Blank(columns)
    if "PIECE" in options:
        named = softmax.in_pieces(options)
        args = *arrays, columns, layer_norm.EPSILON
        return launch(layer_norm.norm_in_pieces, rows, args, **named)
    grid = triton.cdiv(rows, options["ROWS"])
    args = *arrays, rows, columns, layer_norm.EPSILON
    return launch(layer_norm.norm_forward, grid, args, **layer_norm.WHOLE | options)


def backward(columns, rows) -> Launch:
    """The gradients of `rows` rows, by as many programs as fit."""
    programs = layer_norm.PROGRAMS_AN_SM * SMS
    x, part, along = Blank((rows, columns)), Blank((programs, columns)), Blank(columns)
    args = x, part, part, x, x, along, Blank(rows), Blank(rows), rows, columns
    block = triton.next_power_of_2(columns)
    warps = min(32, max(4, block // 512))
    return launch(layer_norm.norm_backward, programs, args, BLOCK=block, num_warps=warps)


def parts_of(columns) -> Launch:
    """The second kernel: it adds what the programs of the first have summed."""
    programs = layer_norm.PROGRAMS_AN_SM * SMS
    part, along = Blank((programs, columns)), Blank(columns)
    sizes = {"PARTS": layer_norm.PARTS, "COLUMNS": layer_norm.COLUMNS}
    grid = triton.cdiv(columns, layer_norm.COLUMNS)
    return launch(
        layer_norm.add_parts, grid, (along, along, part, part, programs, columns), **sizes
    )


def products() -> Iterator[Case]:
    for n in (256, 512, 1024, 2048, 4096):
        made = partial(product, torch.float32, (128, 128, 16), n)
        yield Case(f"matmul/fp32/{n}/triton", "products in Triton", (made(n),))
    for n in (4096, 8192):
        made = partial(product, torch.bfloat16, (128, 256, 64), n)
        grown = Growing(made, n, (256, 512, 768))
        yield Case(f"matmul/bf16/{n}/triton_bf16", "products in Triton", (grown,))


def product(dtype, tile, n, inner) -> Launch:
    """A product to n x n, in tiles, three stages of them under way; the inner side is free."""
    bm, bn, bk = tile
    c, a, b = (Blank(shape, dtype) for shape in ((n, n), (n, inner), (inner, n)))
    grid = triton.cdiv(n, bm) * triton.cdiv(n, bn)
    sizes = {"BM": bm, "BN": bn, "BK": bk, "GROUP": in_triton.GROUP}
    named = sizes | {"num_warps": 8, "num_stages": 3}
    return launch(in_triton.matmul, grid, (c, a, b, n, n, inner), **named)


def cases() -> list[Case]:
    """All of them."""
    return [*rows(), *products()]
