"""One planted mistake each. `# mistake: KIND` stands at the line that the engine must name."""

import torch

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


def on_a_vector(kernel, programs, n, size=None, out=torch.empty, **constants):
    """Run it on n random numbers, and on an output of n or of this size."""
    return lambda: kernel[(programs,)](torch.randn(n), out(size or n), n, **constants)


@triton.jit
def no_mask_on_the_store(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, value)  # mistake: outside


run_no_mask_on_the_store = on_a_vector(no_mask_on_the_store, 4, 100, B=32)


@triton.jit
def no_mask_on_the_load(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + i)  # mistake: outside
    tl.store(out + i, value, mask=i < n)


run_no_mask_on_the_load = on_a_vector(no_mask_on_the_load, 4, 100, B=32)


@triton.jit
def mask_off_by_one(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + i, mask=i <= n, other=0.0)  # mistake: outside
    tl.store(out + i, value, mask=i < n)


run_mask_off_by_one = on_a_vector(mask_off_by_one, 4, 100, B=32)


@triton.jit
def mask_of_the_other_axis(x, out, rows, columns, B: tl.constexpr):
    row = tl.arange(0, B)[:, None]
    column = tl.arange(0, B)[None, :]
    inside = (row < columns) & (column < rows)
    value = tl.load(x + row * columns + column, mask=inside, other=0.0)  # mistake: outside
    tl.store(out + row * columns + column, value, mask=inside)


def run_mask_of_the_other_axis():
    mask_of_the_other_axis[(1,)](torch.randn(5, 16), torch.empty(5, 16), 5, 16, B=16)


@triton.jit
def before_the_first(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    left = tl.load(x + i - 1, mask=i < n, other=0.0)  # mistake: outside
    tl.store(out + i, left, mask=i < n)


run_before_the_first = on_a_vector(before_the_first, 1, 20, B=32)


@triton.jit
def stride_of_the_wrong_matrix(x, out, rows, columns, B: tl.constexpr):
    row = tl.arange(0, B)[:, None]
    column = tl.arange(0, B)[None, :]
    value = tl.load(x + row * columns + column, mask=(row < rows) & (column < columns), other=0.0)
    inside = (row < columns) & (column < rows)
    tl.store(out + row * columns + column, tl.trans(value), mask=inside)  # mistake: outside


def run_stride_of_the_wrong_matrix():
    stride_of_the_wrong_matrix[(1,)](torch.randn(4, 10), torch.empty(10, 4), 4, 10, B=16)


@triton.jit
def into_the_neighbour(both, x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i))  # mistake: outside


def run_into_the_neighbour():
    memory = torch.zeros(64)
    x = torch.frombuffer(memory.numpy(), dtype=torch.float32, count=8)
    out = torch.empty(32)
    into_the_neighbour[(1,)](memory, x.clone(), out, B=32)


@triton.jit
def index_from_memory(x, index, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + tl.load(index + i)))  # mistake: outside


def run_index_from_memory():
    index = torch.tensor([0, 3, 5, 16])
    index_from_memory[(1,)](torch.randn(16), index, torch.empty(4), B=4)


@triton.jit
def atomic_outside(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(out + tl.load(x + i), 1)  # mistake: outside


def run_atomic_outside():
    x = torch.tensor([0, 1, 2, 9])
    atomic_outside[(1,)](x, torch.zeros(9, dtype=torch.int32), B=4)


@triton.jit
def negative_row(x, out, n, B: tl.constexpr):
    first = (tl.program_id(0) - 1) * B
    i = first + tl.arange(0, B)
    tl.store(out + i, 1.0, mask=i < n)  # mistake: outside


run_negative_row = on_a_vector(negative_row, 2, 32, B=16)


@triton.jit
def block_pointer_without_boundary(x, out, n, B: tl.constexpr):
    source = tl.make_block_ptr(x, (n,), (1,), (0,), (B,), (0,))
    value = tl.load(source)  # mistake: outside
    i = tl.arange(0, B)
    tl.store(out + i, value, mask=i < n)


run_block_pointer_without_boundary = on_a_vector(block_pointer_without_boundary, 1, 20, B=32)


# ---- what nobody wrote


@triton.jit
def sum_without_other(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    values = tl.load(x + i, mask=i < n)
    tl.store(out, tl.sum(values, 0))  # mistake: undefined


run_sum_without_other = on_a_vector(sum_without_other, 1, 50, B=64, size=1)


@triton.jit
def softmax_without_other(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.load(x + i, mask=i < n)
    powers = tl.exp(row - tl.max(row, 0))
    tl.store(out + i, powers / tl.sum(powers, 0), mask=i < n)  # mistake: undefined


run_softmax_without_other = on_a_vector(softmax_without_other, 1, 50, B=64)


@triton.jit
def product_without_other(c, a, b, k, B: tl.constexpr):
    i = tl.arange(0, B)
    tile_a = tl.load(a + i[:, None] * k + i[None, :], mask=i[None, :] < k)
    tile_b = tl.load(b + i[:, None] * B + i[None, :], mask=i[:, None] < k, other=0.0)
    tl.store(c + i[:, None] * B + i[None, :], tl.dot(tile_a, tile_b))  # mistake: undefined


def run_product_without_other():
    a, b = torch.randn(16, 10), torch.randn(10, 16)
    product_without_other[(1,)](torch.empty(16, 16), a, b, 10, B=16)


@triton.jit
def stored_beyond_the_read(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.load(x + i, mask=i < n - 1)
    tl.store(out + i, value, mask=i < n)  # mistake: undefined


run_stored_beyond_the_read = on_a_vector(stored_beyond_the_read, 1, 20, B=32)


@triton.jit
def adds_to_empty_memory(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    inside = i < n
    total = tl.load(out + i, mask=inside) + tl.load(x + i, mask=inside)
    tl.store(out + i, total, mask=inside)  # mistake: undefined


run_adds_to_empty_memory = on_a_vector(adds_to_empty_memory, 1, 20, B=32)


@triton.jit
def parts_that_nobody_wrote(parts, out, P: tl.constexpr):
    tl.store(out, tl.sum(tl.load(parts + tl.arange(0, P)), 0))  # mistake: undefined


def run_parts_that_nobody_wrote():
    parts = torch.empty(8)
    parts[:6] = 1.0
    parts_that_nobody_wrote[(1,)](parts, torch.empty(1), P=8)


@triton.jit
def address_that_nobody_read(x, index, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    places = tl.load(index + i, mask=i < n)
    value = tl.load(x + places)  # mistake: undefined
    tl.store(out + i, value, mask=i < n)


def run_address_that_nobody_read():
    index = torch.arange(5)
    address_that_nobody_read[(1,)](torch.randn(16), index, torch.empty(5), 5, B=8)


@triton.jit
def atomic_of_undefined(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.load(x + i, mask=i < n)
    tl.atomic_add(out, tl.sum(value, 0))  # mistake: undefined


run_atomic_of_undefined = on_a_vector(atomic_of_undefined, 1, 5, B=8, size=1, out=torch.zeros)


# ---- programs that meet


@triton.jit
def sum_without_atomic(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    part = tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0)
    before = tl.load(out)  # mistake: race
    tl.store(out, before + part)


run_sum_without_atomic = on_a_vector(sum_without_atomic, 4, 100, B=32, size=1, out=torch.zeros)


@triton.jit
def everybody_writes_the_result(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    part = tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0)
    tl.store(out, part)  # mistake: race


run_everybody_writes_the_result = on_a_vector(everybody_writes_the_result, 4, 100, B=32, size=1)


@triton.jit
def blocks_overlap(x, out, n, B: tl.constexpr, STEP: tl.constexpr):
    i = tl.program_id(0) * STEP + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)  # mistake: race


run_blocks_overlap = on_a_vector(blocks_overlap, 4, 100, B=32, STEP=24)


@triton.jit
def shift_in_place(x, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    right = tl.load(x + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(x + i, right, mask=i < n)  # mistake: race


def run_shift_in_place():
    shift_in_place[(3,)](torch.randn(90), 90, B=32)


@triton.jit
def transpose_in_place(x, n, B: tl.constexpr):
    row = tl.program_id(0) * B + tl.arange(0, B)[:, None]
    column = tl.program_id(1) * B + tl.arange(0, B)[None, :]
    tile = tl.load(x + row * n + column)  # mistake: race
    to = (tl.program_id(1) * B + tl.arange(0, B))[:, None] * n
    tl.store(x + to + (tl.program_id(0) * B + tl.arange(0, B))[None, :], tl.trans(tile))


def run_transpose_in_place():
    transpose_in_place[(2, 2)](torch.randn(16, 16), 16, B=8)


@triton.jit
def wrong_axis_of_the_grid(x, out, n, B: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, B)
    value = tl.load(x + row * n + column, mask=column < n)
    tl.store(out + row * n + column, value, mask=column < n)  # mistake: race


def run_wrong_axis_of_the_grid():
    wrong_axis_of_the_grid[(2, 3)](torch.randn(6, 10), torch.empty(6, 10), 10, B=16)


@triton.jit
def store_beside_atomics(x, out, n, B: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(out, 0.0)
    i = tl.program_id(0) * B + tl.arange(0, B)
    part = tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0)
    tl.atomic_add(out, part, sem="relaxed")  # mistake: race


run_store_beside_atomics = on_a_vector(store_beside_atomics, 4, 100, B=32, size=1)


@triton.jit
def atomic_of_one_program(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    part = tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0)
    tl.atomic_add(out, part, scope="cta")  # mistake: race


run_atomic_of_one_program = on_a_vector(
    atomic_of_one_program, 4, 100, B=32, size=1, out=torch.zeros
)


@triton.jit
def flag_of_one_program(flag, data, out):
    if tl.program_id(0) == 0:
        tl.store(data, 1.0)
        tl.atomic_xchg(flag, 1, scope="cta")
    else:
        while tl.atomic_add(flag, 0) == 0:  # mistake: race
            pass
        tl.store(out, tl.load(data))


def run_flag_of_one_program():
    flag = torch.zeros(1, dtype=torch.int32)
    flag_of_one_program[(2,)](flag, torch.empty(1), torch.empty(1))


@triton.jit
def flag_without_an_order(flag, data, out):
    if tl.program_id(0) == 0:
        tl.store(data, 1.0)
        tl.atomic_xchg(flag, 1, sem="relaxed")
    else:
        while tl.atomic_add(flag, 0, sem="relaxed") == 0:
            pass
        tl.store(out, tl.load(data))  # mistake: race


def run_flag_without_an_order():
    flag = torch.zeros(1, dtype=torch.int32)
    flag_without_an_order[(2,)](flag, torch.empty(1), torch.empty(1))


@triton.jit
def lock_given_back_too_early(lock, out, B: tl.constexpr):
    i = tl.arange(0, B)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    total = tl.load(out + i) + 1.0  # mistake: race
    tl.atomic_xchg(lock, 0)
    tl.store(out + i, total)


def run_lock_given_back_too_early():
    lock = torch.zeros(1, dtype=torch.int32)
    lock_given_back_too_early[(4,)](lock, torch.zeros(8), B=8)


@triton.jit
def descriptors_overlap(x, out, B: tl.constexpr):
    at = tl.program_id(0) * (B // 2)
    out.store([at, 0], x.load([at, 0]))  # mistake: race


def run_descriptors_overlap():
    x = TensorDescriptor.from_tensor(torch.randn(32, 16), [16, 16])
    out = TensorDescriptor.from_tensor(torch.empty(32, 16), [16, 16])
    descriptors_overlap[(2,)](x, out, B=16)


@triton.jit
def lanes_that_disagree(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i // 2, tl.load(x + i))  # mistake: race


def run_lanes_that_disagree():
    lanes_that_disagree[(1,)](torch.randn(8), torch.empty(4), B=8)


# ---- numbers and waiting


@triton.jit
def offsets_too_large(out, stride, B: tl.constexpr):
    row = tl.program_id(0) + 3
    at = row * stride  # mistake: overflow
    tl.store(out + at + tl.arange(0, B), 1.0)


def run_offsets_too_large():
    offsets_too_large[(1,)](torch.empty(16), 1 << 30, B=16)


@triton.jit
def assertion(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.load(x + i, mask=i < n, other=0.0)
    tl.device_assert(value >= 0, "negative")  # mistake: assertion
    tl.store(out + i, tl.sqrt(value), mask=i < n)


def run_assertion():
    assertion[(1,)](torch.tensor([1.0, -1.0]), torch.empty(2), 2, B=2)


@triton.jit
def lock_never_given_back(lock, out):
    while tl.atomic_cas(lock, 0, 1) == 1:  # mistake: deadlock
        pass
    tl.store(out, 1.0)


def run_lock_never_given_back():
    lock = torch.zeros(1, dtype=torch.int32)
    lock_never_given_back[(2,)](lock, torch.empty(1))
