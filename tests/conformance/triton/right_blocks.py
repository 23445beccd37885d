"""Programs over blocks of two dimensions: products, transposes, descriptors."""

import torch

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def transpose(x, out, m, n, B: tl.constexpr):
    row = tl.program_id(0) * B + tl.arange(0, B)[:, None]
    column = tl.program_id(1) * B + tl.arange(0, B)[None, :]
    tile = tl.load(x + row * n + column, mask=(row < m) & (column < n))
    to_row = tl.program_id(1) * B + tl.arange(0, B)[:, None]
    to_column = tl.program_id(0) * B + tl.arange(0, B)[None, :]
    tl.store(out + to_row * m + to_column, tl.trans(tile), mask=(to_row < n) & (to_column < m))


def check_transpose():
    x = torch.randn(45, 70)
    out = torch.empty(70, 45)
    transpose[(2, 3)](x, out, 45, 70, B=32)
    assert torch.equal(out, x.T)


@triton.jit
def strided(x, out, rows, columns, down, right, B: tl.constexpr):
    row = tl.arange(0, B)[:, None]
    column = tl.arange(0, B)[None, :]
    inside = (row < rows) & (column < columns)
    tl.store(out + row * columns + column, tl.load(x + row * down + column * right, mask=inside),
             mask=inside)  # fmt: skip


def check_strides_of_a_view():
    x = torch.randn(20, 30)
    view = x.T[::2]
    out = torch.empty(view.shape)
    strided[(1,)](view, out, *view.shape, *view.stride(), B=32)
    assert torch.equal(out, view)


@triton.jit
def matmul(c, a, b, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    column = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, k, BK):
        right = k0 + tl.arange(0, BK)[None, :]
        down = k0 + tl.arange(0, BK)[:, None]
        tile_a = tl.load(a + row * k + right, mask=(row < m) & (right < k), other=0.0)
        tile_b = tl.load(b + down * n + column, mask=(down < k) & (column < n), other=0.0)
        total = tl.dot(tile_a, tile_b, total)
    tl.store(c + row * n + column, total.to(c.dtype.element_ty), mask=(row < m) & (column < n))


def _check_matmul(dtype, tolerance):
    a, b = torch.randn(50, 70).to(dtype), torch.randn(70, 40).to(dtype)
    c = torch.empty(50, 40, dtype=dtype)
    matmul[(2, 3)](c, a, b, 50, 40, 70, BM=32, BN=16, BK=32)
    torch.testing.assert_close(c.double(), a.double() @ b.double(), atol=tolerance, rtol=tolerance)


def check_matmul_float32():
    _check_matmul(torch.float32, 1e-5)


def check_matmul_bfloat16():
    _check_matmul(torch.bfloat16, 8e-3)


def check_matmul_float16():
    _check_matmul(torch.float16, 1e-3)


@triton.jit
def only_rows(c, a, b, k, BM: tl.constexpr, BK: tl.constexpr):
    row = tl.arange(0, BM)
    right = tl.arange(0, BK)
    # rows beyond the matrix stay undefined, and are not stored
    tile_a = tl.load(a + row[:, None] * k + right[None, :], mask=row[:, None] < 5)
    tile_b = tl.load(b + right[:, None] * BM + row[None, :])
    at = row[:, None] * BM + row[None, :]
    tl.store(c + at, tl.dot(tile_a, tile_b), mask=row[:, None] < 5)


def check_undefined_rows_of_a_product_stay_rows():
    a, b, c = torch.randn(5, 16), torch.randn(16, 16), torch.empty(5, 16)
    only_rows[(1,)](c, a, b, 16, BM=16, BK=16)
    torch.testing.assert_close(c, a @ b)


@triton.jit
def described(c, a, b, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM
    column = tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, k, BK):
        total = tl.dot(a.load([row, k0]), b.load([k0, column]), total)
    c.store([row, column], total.to(c.dtype))


def check_tensor_descriptors():
    a, b, c = torch.randn(48, 40), torch.randn(40, 24), torch.empty(48, 24)
    blocks = [(c, [32, 16]), (a, [32, 16]), (b, [16, 16])]
    descriptors = [TensorDescriptor.from_tensor(x, block) for x, block in blocks]
    described[(2, 2)](*descriptors, 40, BM=32, BN=16, BK=16)
    torch.testing.assert_close(c, a @ b)


@triton.jit
def described_inside(x, out, m, n, B: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [m, n], [n, 1], [B, B])
    target = tl.make_tensor_descriptor(out, [m, n], [n, 1], [B, B])
    at = [tl.program_id(0) * B, tl.program_id(1) * B]
    target.store(at, source.load(at) * 2)


def check_tensor_descriptors_made_in_the_kernel():
    x = torch.randn(20, 24)
    out = torch.empty_like(x)
    described_inside[(2, 2)](x, out, 20, 24, B=16)
    assert torch.equal(out, x * 2)


@triton.jit
def block_pointers(x, out, m, n, B: tl.constexpr):
    at = (tl.program_id(0) * B, 0)
    source = tl.make_block_ptr(x, (m, n), (n, 1), at, (B, B), (1, 0))
    target = tl.make_block_ptr(out, (m, n), (n, 1), at, (B, B), (1, 0))
    for _ in range(0, n, B):
        tile = tl.load(source, boundary_check=(0, 1), padding_option="zero")
        tl.store(target, tile + 1, boundary_check=(0, 1))
        source = tl.advance(source, (0, B))
        target = tl.advance(target, (0, B))


def check_block_pointers():
    x = torch.randn(20, 40)
    out = torch.empty_like(x)
    block_pointers[(2,)](x, out, 20, 40, B=16)
    assert torch.equal(out, x + 1)


@triton.jit
def halves(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tile = tl.load(x + i[:, None] * B + i[None, :])
    left, right = tl.split(tl.permute(tl.reshape(tile, (B, 2, B // 2)), (0, 2, 1)))
    j = tl.arange(0, B // 2)
    tl.store(out + i[:, None] * (B // 2) + j[None, :], left - right)


def check_reshape_permute_split():
    x = torch.randn(16, 16)
    out = torch.empty(16, 8)
    halves[(1,)](x, out, B=16)
    assert torch.equal(out, x[:, :8] - x[:, 8:])


@triton.jit
def joined(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    both = tl.interleave(tl.load(x + i), tl.load(y + i))
    tl.store(out + tl.arange(0, 2 * B), both)


def check_interleave():
    x, y, out = torch.randn(8), torch.randn(8), torch.empty(16)
    joined[(1,)](x, y, out, B=8)
    assert torch.equal(out, torch.stack([x, y], 1).ravel())


@triton.jit
def picked(x, index, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.gather(tl.load(x + i), tl.load(index + i), axis=0))


def check_gather():
    x, out = torch.randn(16), torch.empty(16)
    index = torch.randperm(16).int()
    picked[(1,)](x, index, out, B=16)
    assert torch.equal(out, x[index.long()])


@triton.jit
def attention(q, k, v, out, n, D: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0) * B + tl.arange(0, B)
    d = tl.arange(0, D)
    queries = tl.load(q + row[:, None] * D + d[None, :], mask=row[:, None] < n, other=0.0)
    top = tl.full((B,), -float("inf"), tl.float32)
    total = tl.zeros((B,), tl.float32)
    result = tl.zeros((B, D), tl.float32)
    for first in range(0, n, B):
        other = first + tl.arange(0, B)
        inside = other < n
        keys = tl.load(k + other[:, None] * D + d[None, :], mask=inside[:, None], other=0.0)
        values = tl.load(v + other[:, None] * D + d[None, :], mask=inside[:, None], other=0.0)
        scores = tl.dot(queries, tl.trans(keys), input_precision="ieee") * (1 / D**0.5)
        scores = tl.where(inside[None, :], scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        shrink = tl.exp(top - higher)
        powers = tl.exp(scores - higher[:, None])
        total = total * shrink + tl.sum(powers, 1)
        result = result * shrink[:, None] + tl.dot(powers, values, input_precision="ieee")
        top = higher
    result = result / total[:, None]
    tl.store(out + row[:, None] * D + d[None, :], result, mask=row[:, None] < n)


def check_attention():
    q, k, v = torch.randn(3, 50, 16)
    out = torch.empty(50, 16)
    attention[(4,)](q, k, v, out, 50, D=16, B=16)
    wanted = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]
    torch.testing.assert_close(out, wanted)
