"""Launch the kernels in cuda/: many transforms in one pass, long ones and pictures in two.

    plans.Rows(1024)(x, out)                     # the last axis, of 1,024 points
    plans.Rows(1024, inverse=True)(x, out)       # and back, divided by 1,024
    plans.Long(1 << 16)(x, out)
    plans.Pictures(1024)(x, out)

x, out: contiguous arrays of complex64 on the GPU (NumPy arrays where there is none). Lengths are
powers of two.
"""

from dataclasses import dataclass

import torch

from course.kernels.fft.kernels import DEVICE, load, multiprocessors, shared_bytes
from utils.occupancy import ceil_div

COMPLEX_BYTES = 8
MOST_BLOCKS = 32  # that a multiprocessor runs at a time, of any GPU


def padded(points: int, radix: int) -> int:
    """Places in shared memory for so many points: a gap follows each `radix` of them."""
    return points + points // radix


@dataclass(frozen=True)
class Deal:
    """How a transform is dealt out.

    radix: points in a thread's registers; together: transforms of a block; blocks: as many of them
    shall fit a multiprocessor's registers.
    """

    radix: int = 16
    together: int = 1
    blocks: int = 2
    flags: tuple[str, ...] = ()

    def launch(self, n: int, rows: int) -> tuple[int, int, int]:
        """Blocks, threads and bytes of shared memory for rows of n points."""
        blocks = ceil_div(rows, self.together)
        threads = n // self.radix * self.together
        places = padded(n, self.radix) * self.together
        return blocks, threads, places * COMPLEX_BYTES


#: Of transforms in one pass, by length; found on an H200
DEALS = {
    256: Deal(8, 2, 18),
    512: Deal(8, 1, 18),
    1024: Deal(16, 4, 3),
    2048: Deal(32, 1, 6),
    4096: Deal(16, 1, 3),
    8192: Deal(32, 1, 2),
}
LONGEST_ROW = max(DEALS)


def deal_for(n: int) -> Deal:
    """How rows of n points are dealt out, unless one says how."""
    if n in DEALS:
        return DEALS[n]
    radix = min(n, 16)
    together = max(1, 64 * radix // n)
    return Deal(radix, together, blocks=1)


class Rows:
    """The transforms of all rows of n points: one pass over memory.

    n: a power of two up to 8,192. Raises ValueError for other lengths.
    """

    def __init__(
        self,
        n: int,
        inverse: bool = False,
        deal: Deal | None = None,
    ):
        if not is_power_of_two(n) or not 2 <= n <= LONGEST_ROW:
            raise ValueError(f"{n:,} is no power of two from 2 to {LONGEST_ROW:,}")
        self.n = n
        self.deal = deal or deal_for(n)
        self.code = rows_code(n, inverse, self.deal)
        self._kernel = kernel(self.code)

    def __call__(self, x, out) -> None:
        """out[r] = the transform of x[r], of rows r of n points; x and out may be the same."""
        rows = count(x) // self.n
        if rows:
            shape = self.deal.launch(self.n, rows)
            launch = self._kernel[shape]
            launch(floats(x), floats(out), rows)


def is_power_of_two(n: int) -> bool:
    """Whether n is 1, 2, 4 ..."""
    return n > 0 and n & (n - 1) == 0


def count(x) -> int:
    """How many numbers an array or a tensor holds."""
    if isinstance(x, torch.Tensor):
        return x.numel()
    return x.size


@dataclass(frozen=True)
class TwoPass:
    """How two passes in one launch are dealt out.

    radix, together, blocks: as in `Deal`; `together` columns or rows make a tile. lag: by how many
    tiles the second pass follows the first, at least; at least an item's.
    """

    radix: int = 16
    together: int = 16
    blocks: int = 2
    lag: int = 128
    flags: tuple[str, ...] = ()

    def template(self, name: str, side: int, *more) -> "Code":
        """The kernel of this name in two_passes.cu, for matrices of side * side points."""
        values = (side, side, self.radix, self.together, self.blocks, *more)
        return "two_passes.cu", self.flags, instance(name, values)

    def shape(self, side: int) -> tuple[int, int]:
        """Threads and bytes of shared memory of a block."""
        threads = side // self.radix * self.together
        places = (padded(side, self.radix) + 1) * self.together
        return threads, places * COMPLEX_BYTES

    def behind(self, side: int) -> int:
        """Tiles by which the second pass follows the first."""
        return max(self.lag, self.tiles(side))

    def launch(self, side: int, items: int) -> tuple[int, int, int]:
        """Blocks that draw tickets, at least as many as run at a time; threads; bytes."""
        tickets = 2 * (self.tiles(side, items) + self.behind(side))
        most = MOST_BLOCKS * multiprocessors()
        return min(tickets, most), *self.shape(side)

    def launch_of_one_pass(
        self,
        side: int,
        items: int,
    ) -> tuple[int, int, int]:
        """Blocks, threads and bytes of a pass that has a launch of its own."""
        return self.tiles(side, items), *self.shape(side)

    def tiles(self, side: int, items: int = 1) -> int:
        """Tiles of one pass."""
        return side // self.together * items


STREAMED = ("-DLOAD=__ldcs", "-DSTORE=__stcs")  # keep what lies between the passes in L2 instead
LONG_DEAL = TwoPass(16, 16, 4, 352, STREAMED)
#: The first that fits a block's shared memory is taken
PICTURE_DEALS = (
    TwoPass(32, 16, 1, 128),
    TwoPass(16, 8, 2, 256),
    TwoPass(16, 4, 4, 512),
)


def picture_deal(side: int) -> TwoPass:
    """How pictures are dealt out, unless one says how."""
    for deal in PICTURE_DEALS:
        _, needed = deal.shape(side)
        if needed <= shared_bytes():
            return deal
    return PICTURE_DEALS[-1]


class Long:
    """Transforms of side * side points in two passes over memory, both in one launch.

    n: 2^(2 k). The intermediate result is kept for `kept` items at a time, in the L2 cache.
    """

    def __init__(
        self,
        n: int,
        inverse: bool = False,
        deal: TwoPass | None = None,
    ):
        side = int(round(n**0.5))
        if side * side != n or not is_power_of_two(side) or side < 32:
            raise ValueError(f"{n:,} is not the square of a power of two from 32")
        self.n = n
        self.side = side
        self.deal = deal or LONG_DEAL
        items_behind = ceil_div(self.deal.behind(side), self.deal.tiles(side))
        self._kept = 2 * items_behind + 1
        self.code, *self.codes_in_two = long_codes(side, inverse, self.deal)
        self._scratch = torch.empty(
            self._kept * n,
            dtype=torch.complex64,
            device=DEVICE,
        )
        self._state = torch.zeros(1, dtype=torch.int32, device=DEVICE)

    def __call__(self, x, out) -> None:
        """out[i] = the transform of x[i], of items i of n points; x and out must not overlap."""
        items = count(x) // self.n
        if not items:
            return
        self._state = _zeros(self._state, 1 + 2 * items)
        shape = self.deal.launch(self.side, items)
        kernel(self.code)[shape](
            floats(x),
            floats(out),
            floats(self._scratch),
            self._kept,
            self.deal.behind(self.side),
            items,
            self._state.view(torch.uint32),
        )

    def two_launches(self, x, out, between) -> None:
        """The same with a launch for each pass. between: as large as x."""
        items = count(x) // self.n
        shape = self.deal.launch_of_one_pass(self.side, items)
        columns, turning = map(kernel, self.codes_in_two)
        columns[shape](floats(x), floats(between))
        turning[shape](floats(between), floats(out))


class Pictures:
    """Transforms of pictures of side * side points, rows and columns, in one launch."""

    def __init__(
        self,
        side: int,
        inverse: bool = False,
        deal: TwoPass | None = None,
    ):
        self.side = side
        self.deal = deal or picture_deal(side)
        codes = picture_codes(side, inverse, self.deal)
        self.code, self.code_of_rows, self.code_of_columns = codes
        self._state = torch.zeros(1, dtype=torch.int32, device=DEVICE)

    def __call__(self, x, out) -> None:
        """out[p] = the transform of picture x[p]; x and out may be the same."""
        pictures = count(x) // self.side**2
        if not pictures:
            return
        self._state = _zeros(self._state, 1 + pictures)
        shape = self.deal.launch(self.side, pictures)
        kernel(self.code)[shape](
            floats(x),
            floats(out),
            pictures,
            self.deal.behind(self.side),
            self._state.view(torch.uint32),
        )

    def two_launches(self, x, out) -> None:
        """The same with a launch for the rows and one for the columns."""
        pictures = count(x) // self.side**2
        shape = self.deal.launch_of_one_pass(self.side, pictures)
        rows = kernel(self.code_of_rows)[shape]
        columns = kernel(self.code_of_columns)[shape]
        rows(floats(x), floats(out), pictures * self.side)
        columns(floats(out), floats(out))


def floats(x):
    """The same numbers as pairs of float32: what a kernel's float2 points to."""
    if isinstance(x, torch.Tensor):
        return torch.view_as_real(x)
    return x.view("float32")


def _zeros(state, count: int):
    """`state`, cleared, or a new one if it is too short."""
    if state.numel() < count:
        return torch.zeros(count, dtype=torch.int32, device=DEVICE)
    return state.zero_()


# ---- which kernels ----------------------------------------------------------------------------

Code = tuple[str, tuple[str, ...], str]  # file, flags, template with its arguments


def _sign(inverse: bool) -> int:
    return 1 if inverse else -1


def instance(name: str, values) -> str:
    """A template with its arguments: fft_rows<1024, 16>."""
    return f"{name}<{', '.join(map(str, values))}>"


def rows_code(n: int, inverse: bool, deal: Deal | TwoPass) -> Code:
    """The kernel of `Rows`."""
    values = (n, deal.radix, deal.together, deal.blocks, _sign(inverse))
    return "one_pass.cu", deal.flags, instance("fft_rows", values)


def long_codes(
    side: int,
    inverse: bool,
    deal: TwoPass,
) -> tuple[Code, Code, Code]:
    """The kernels of `Long`: both passes, the first, the second."""
    sign = _sign(inverse)
    return (
        deal.template("fft_long", side, sign),
        deal.template("fft_columns", side, sign, "true"),
        deal.template("fft_turning", side, sign),
    )


def picture_codes(
    side: int,
    inverse: bool,
    deal: TwoPass,
) -> tuple[Code, Code, Code]:
    """The kernels of `Pictures`: both passes, rows, columns."""
    sign = _sign(inverse)
    return (
        deal.template("fft_pictures", side, sign),
        rows_code(side, inverse, deal),
        deal.template("fft_columns", side, sign, "false"),
    )


def kernel(code: Code):
    """The compiled kernel."""
    file, flags, expression = code
    return load(file, flags)[expression]
