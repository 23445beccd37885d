"""The chapter's kernels as a learner left them in their cells: proved, or what is wrong is said."""

import numpy as np
import torch
from numba import cuda

from course.kernels.convolution import classic, hopper, implicit
from course.kernels.convolution.rightness import references, tensors
from course.kernels.convolution.shapes import Convolution
from course.kernels.trying import sketch, tried
from utils import check, cuda_c, has_gpu
from utils.occupancy import ceil_div
from utils.tools.diagnostics import LearnerError

SIDE = 5  # of the pictures' filter
SIDE_OF_BANK = 3
PART = 200, 300  # of the picture, on which results are compared with float64
ROUNDED = 2**-7  # of the largest value: what rounding to 16 bits explains
AROUND = 1024  # zeros before an array and behind it, where a wrong index may lead
NO_WGMMA = "this GPU has no wgmma (compute capability 9.0 has)"


class Pictures:
    """A random picture and a random filter, for the rungs of classic.cu."""

    def __init__(self, h: int, w: int):
        rng = np.random.default_rng(5)
        self.scene = rng.random((h, w), dtype=np.float32)
        self.taps = rng.random((SIDE, SIDE), dtype=np.float32)
        part = self.scene[: PART[0], : PART[1]].copy()
        around = np.pad(part, SIDE // 2)
        self.windows = np.lib.stride_tricks.sliding_window_view(around, (SIDE, SIDE))
        self.part = cuda.to_device(part)

    def exact(self, taps):
        """The part of the picture, filtered in float64."""
        return np.einsum("yxrs,rs->yx", self.windows, taps.astype(float))

    def run(self, name: str, taps, picture=None, out=None):
        """Filter with a rung of classic.cu; the result."""
        picture = self.part if picture is None else picture
        if out is None:
            out = cuda.to_device(check.poison(picture.shape))
        classic.RUNGS[name](out, picture, self._given(name, taps))
        return out

    def _given(self, name, taps):
        return cuda.to_device(taps) if name == "naive" else classic.by_value(taps)

    def prove(self, name: str) -> None:
        """Compare a rung's result with float64; AssertionError where it is wrong."""
        check.close(self.run(name, self.taps), self.exact(self.taps), ops=SIDE**2)

    def tried(self, name: str, taps) -> None:
        """Say whether a rung is right with these taps; nothing is raised."""
        tried(lambda: self.run(name, taps), self.exact(taps), classic.module)

    def rivals(self) -> dict:
        """name -> a call that filters the whole picture, PyTorch's among them."""
        scene = cuda.to_device(self.scene)
        out = cuda.to_device(check.poison(self.scene.shape))
        given = {name: self._given(name, self.taps) for name in classic.RUNGS}
        rivals = {
            name: lambda rung=rung, name=name: rung(out, scene, given[name])
            for name, rung in classic.RUNGS.items()
        }
        device = "cuda" if has_gpu() else "cpu"
        x, w = (torch.from_numpy(a).to(device)[None, None] for a in (self.scene, self.taps))
        rivals["torch"] = lambda: torch.nn.functional.conv2d(x, w, padding=SIDE // 2)
        return rivals


def of_first_channel(wrong: np.ndarray) -> str:
    """A map of the first picture's first channel: at which pixels it is wrong."""
    return sketch(wrong[0, ..., 0])


def layer(kind: str, conv: Convolution) -> None:
    """Say whether implicit.cu is right as it stands now. kind: "y", "dx" or "dw".

    Where it is wrong, a map of the first picture's first channel shows at which pixels, also on a
    machine without a GPU, where an access out of bounds is named first.
    """
    t = tensors(conv, "cuda" if has_gpu() else "cpu", implicit.sixteen_bits())
    t.update((name, amid_zeros(t[name])) for name in ("x", "w", "dy"))
    runs = {
        "y": lambda: implicit.forward(t["y"], t["x"], t["w"], conv),
        "dx": lambda: implicit.data_gradient(t["dx"], t["dy"], t["w"], conv),
        "dw": lambda: implicit.weights_gradient(t["dw"], t["dy"], t["x"], conv),
    }

    def compute():
        runs[kind]()
        return t[kind]

    exact = references(t, conv, (kind,))[kind]
    tried(compute, exact, implicit.module, ROUNDED, of_first_channel, goes_on=True)


def amid_zeros(array: torch.Tensor) -> torch.Tensor:
    """A copy of a contiguous array with AROUND zeros before it and behind it in memory."""
    room = array.new_zeros(array.numel() + 2 * AROUND)
    inside = room[AROUND:-AROUND].view(array.shape)
    return inside.copy_(array)


def patch(conv: Convolution) -> None:
    """Say whether halo.cu's forward pass is right as it stands now. 64 channels in and out."""
    if not hopper.available():
        print(NO_WGMMA)
        return
    t = tensors(conv, "cuda" if has_gpu() else "cpu")

    def compute():
        hopper.halo_forward(t["y"], t["x"], t["w"], conv)()
        return t["y"]

    exact = references(t, conv, ("y",))["y"]
    tried(compute, exact, hopper.module, ROUNDED, of_first_channel, slow_checks=False)


def filtered(file: str, colours, bank) -> list:
    """Filter a picture (height, width, 3) with the kernel `layer` of a file: a picture a filter.

    bank: filters of 3 × 3 weights, used on each channel. [] where the kernel gives nothing but 0,
    or makes a mistake, which is printed.
    """
    x = np.ascontiguousarray(colours, np.float32)
    h, w, c = x.shape
    weights = np.float32([np.multiply.outer(np.array(taps), np.full(c, 1 / c)) for taps in bank])
    y = cuda.to_device(check.poison((h * w, len(weights))))
    launch = cuda_c.load(file, check=True).layer[(1, ceil_div(h * w, 16)), (16, 16)]
    given = cuda.to_device(x), cuda.to_device(weights)
    try:
        launch(y, *given, h, w, c, len(weights), SIDE_OF_BANK, 1, SIDE_OF_BANK // 2)
    except LearnerError as mistake:
        print(mistake)
        return []
    pictures = np.abs(y.copy_to_host().T.reshape(-1, h, w)).clip(0, 1)
    return list(pictures) if pictures.any() else []


def undone(file: str, photo, taps, rounds: int = 30):
    """Take a shake out of a photograph [h, w], with the kernel `slopes` of a file.

    taps: the shake, [side, side]. None where the kernel leaves something unwritten, or makes a
    mistake, which is printed.
    """
    device = "cuda" if has_gpu() else "cpu"
    y, taps = (torch.tensor(np.array(a, np.float32), device=device) for a in (photo, taps))
    h, w = y.shape
    side = len(taps)
    launch = cuda_c.load(file).slopes[(ceil_div(w, 16), ceil_div(h, 16)), (16, 16)]
    guess = y.clone()
    for _ in range(rounds):
        shaken = torch.nn.functional.conv2d(guess[None, None], taps[None, None], padding=side // 2)
        errors = (shaken[0, 0] - y).contiguous()
        dx = torch.full_like(y, torch.nan)
        try:
            launch(dx, errors, taps, h, w, side)
        except LearnerError as mistake:
            print(mistake)
            return None
        if dx.isnan().any():
            return None
        guess = (guess - dx).clamp(min=0)
    return guess.cpu().numpy().clip(0, 1)
