"""A training step as a list of launches, six ideas that make the list shorter, and one that splits
a sum.

    step = Step(weights, images, labels, ideas=IDEAS[:2], mine={"bn_relu_pool": "build/mine.cu"})
    step.run()
    len(step.launches)     # 38
    step.kilobytes         # what these were handed, for a digit

Plain float32 kernels (kernels/plain.cu, kernels/fused.cu), launched one by one. With no idea there
is one for each layer and direction, as in the trainer of A CNN by hand. What is counted is what
ran: for each launch the arrays that it was handed, once each, as if caches were perfect. Only
arrays that grow with the batch are counted: weights and their gradients cost the same for any
batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from course.kernels.mnist_cnn import fast, sockets
from utils import cuda, cuda_c
from utils.tools import yours

KERNELS = fast.KERNELS
THREADS = 256
#: In the order in which they build on each other.
IDEAS = ("backward", "forward", "moments", "not_stored", "head", "update", "splits")
#: Whose kernels may be the learner's, and the idea with which each comes.
THEIRS = {
    "bn_relu_pool": "forward",
    "patch_moments": "moments",
    "conv1_pool": "not_stored",
    "head": "head",
    "update": "update",
    "split_sums": "splits",
}
PIXELS, HIDDEN, CLASSES, FEATURES = 28 * 28, 128, 10, 49 * 64
PARTS_OF_FC1 = 49  # of each of its sums: one for each pooled pixel, as in the finished trainer
#: Weights, their gradients behind them, in one array each; sizes are multiples of four.
SIZES = {
    "conv1": 32 * 9,
    "gamma1": 32,
    "beta1": 32,
    "conv2": 64 * 9 * 32,
    "gamma2": 64,
    "beta2": 64,
    "fc1": HIDDEN * FEATURES,
    "fc2": CLASSES * HIDDEN,
    "fc1_bias": HIDDEN,
    "fc2_bias": 12,  # ten, and two that nobody reads: beside them lies the loss
}
NAMES = {
    "conv1": "conv1.weight",
    "gamma1": "bn1.weight",
    "beta1": "bn1.bias",
    "conv2": "conv2.weight",
    "gamma2": "bn2.weight",
    "beta2": "bn2.bias",
    "fc1": "fc1.weight",
    "fc2": "fc2.weight",
    "fc1_bias": "fc1.bias",
    "fc2_bias": "fc2.bias",
}
ALL = sum(SIZES.values())


@yours.cache
def _kernels(file: str):
    return cuda_c.load(KERNELS / file)


@dataclass(frozen=True)
class Launch:
    """A kernel that ran: its name, whether the learner wrote it, and what it was handed.

    arrays: name and bytes for a digit of each that grows with the batch.
    """

    name: str
    mine: bool
    arrays: tuple

    @property
    def bytes(self) -> float:
        """For a digit."""
        return sum(size for _, size in self.arrays)


class Step:
    """One training step on one batch. Raises sockets.SocketError for a kernel that is not right."""

    def __init__(
        self,
        weights: Mapping[str, np.ndarray],
        images: np.ndarray,
        labels: np.ndarray,
        lr: float = 0.05,
        ideas: Sequence[str] = (),
        mine: Mapping[str, str | Path] | None = None,
    ):
        unknown = [idea for idea in ideas if idea not in IDEAS]
        if unknown or list(ideas) != list(IDEAS[: len(ideas)]):
            raise ValueError(f"ideas build on each other, in this order: {', '.join(IDEAS)}")
        self.ideas, self.batch, self.lr = tuple(ideas), len(images), np.float32(lr)
        self.launches: list[Launch] = []
        self._per_digit: dict[int, tuple[str, float]] = {}
        self._kept = []  # views, whose ids are keys
        self.images = self._of_batch("images", images.reshape(-1))
        self.labels = self._of_batch("labels", labels)
        rows = (sockets.HEAD_ROWS + self.batch) * HIDDEN
        first = ALL - SIZES["fc2"] - SIZES["fc1_bias"] - SIZES["fc2_bias"]
        state = np.zeros(ALL, np.float32)
        packed = fast.pack(weights)
        for name, part in self._parts(state).items():
            part[: packed[NAMES[name]].size] = packed[NAMES[name]].reshape(-1)
        self._weights = cuda.to_device(state)
        self._gradients = cuda.to_device(np.zeros(first + rows, np.float32))
        self.w, self.dw = self._parts(self._weights), self._parts(self._gradients)
        # of the end of the network: gradients, then the batch's
        self.out = self._noted("out", self._gradients[first:], 4 * HIDDEN)
        behind = self.out[sockets.HEAD_ROWS * HIDDEN :]
        self._dh = self._noted("dh", behind, 4 * HIDDEN)
        self.mine = self._loaded(mine or {})
        self._arrays = {}

    # ---- memory

    @staticmethod
    def _parts(array):
        ends = np.cumsum(list(SIZES.values()))
        return {
            name: array[end - size : end]
            for (name, size), end in zip(SIZES.items(), ends, strict=True)
        }

    def _of_batch(self, name, host):
        array = cuda.to_device(np.ascontiguousarray(host))
        return self._noted(name, array, host.nbytes / self.batch)

    def _noted(self, name, array, bytes_a_digit):
        self._kept.append(array)
        self._per_digit[id(array)] = name, bytes_a_digit
        return array

    def _array(self, name, count, dtype=np.float32, digits=True):
        """Device memory of this name; count: numbers for a digit, or in all."""
        if name not in self._arrays:
            size = count * (self.batch if digits else 1)
            array = cuda.to_device(np.zeros(size, dtype))
            if digits:
                self._noted(name, array, array.nbytes / self.batch)
            self._arrays[name] = array
        return self._arrays[name]

    def _loaded(self, mine):
        kernels = {}
        for name, path in mine.items():
            if name not in THEIRS:
                raise sockets.SocketError(
                    f"no kernel of the step is called {name!r}: there are {', '.join(THEIRS)}"
                )
            if name in sockets.SOCKETS:
                sockets.checked({name: path})
            kernels[name] = getattr(cuda_c.load(path), name)
        return kernels

    # ---- launches

    def _launch(self, kernel, blocks, *arguments, mine=False, threads=THREADS):
        kernel[blocks, threads](*arguments)
        noted = (self._per_digit.get(id(value)) for value in arguments)
        self.launches.append(Launch(kernel.signature.name, mine, tuple(filter(None, noted))))

    def _plain(self, name, n, *arguments):
        """A plain kernel, a thread for each of n elements."""
        kernel = getattr(_kernels("plain.cu"), name)
        self._launch(kernel, (n + THREADS - 1) // THREADS, *arguments)

    def _blocks(self, file, name, blocks, *arguments):
        self._launch(getattr(_kernels(file), name), blocks, *arguments)

    def _theirs(self, name, blocks, *arguments, threads=THREADS):
        """The learner's kernel where there is one, ours where not."""
        own = name in self.mine
        if own:
            kernel = self.mine[name]
        elif name in sockets.SOCKETS:
            kernel = _good(name)
        else:
            kernel = getattr(_kernels("fused.cu"), name)
        self._launch(kernel, blocks, *arguments, mine=own, threads=threads)

    @property
    def kilobytes(self) -> float:
        """What the launches of the last `run` were handed, for a digit."""
        return sum(launch.bytes for launch in self.launches) / 1e3

    # ---- the step

    def run(self) -> None:
        """Forward, backward, update."""
        self.launches = []
        self._first_block()
        p1, p2 = self._array("p1", 196 * 32), self._array("p2", FEATURES)
        self._convolution(2, p1, 14, 32, 64)
        self._norm_to_pool(2, p2, 14, 64)
        h = self._hidden(p2)
        w, dw, plain = self.w, self.dw, self._plain
        dh = self._end(h)
        n = HIDDEN * FEATURES
        plain("linear_backward_weight", n, dw["fc1"], dh, p2, self.batch, FEATURES, HIDDEN)
        if "head" not in self.ideas:
            plain("sum_over_batch", HIDDEN, dw["fc1_bias"], dh, self.batch, HIDDEN)
        n = self.batch * FEATURES
        dp2 = self._array("dp2", FEATURES)
        plain("linear_backward_input", n, dp2, dh, w["fc1"], self.batch, FEATURES, HIDDEN)
        self._back_through_block(2, dp2, p1, 14, 32, 64)
        dp1 = self._array("dp1", 196 * 32)
        dy2 = self._array("dy2", 196 * 64)
        n = self.batch * 196 * 32
        plain("conv_backward_input", n, dp1, dy2, w["conv2"], self.batch, 14, 32, 64)
        if "not_stored" in self.ideas:
            self._back_through_first(dp1)
        else:
            self._back_through_block(1, dp1, self._array("x", PIXELS), 28, 1, 32)
        self._update()

    def _first_block(self):
        p1 = self._array("p1", 196 * 32)
        if "not_stored" not in self.ideas:
            n = self.batch * PIXELS
            x = self._array("x", PIXELS)
            self._plain("scale_pixels", n, x, self.images, n)
            self._convolution(1, x, 28, 1, 32)
        if "moments" in self.ideas:
            self._statistics_from_moments()
        if "not_stored" not in self.ideas:
            self._norm_to_pool(1, p1, 28, 32)
            return
        norm = self._array("norm1", 4 * 32, digits=False)
        self._theirs(
            "conv1_pool",
            min(self.batch, 1024),
            p1,
            self.images,
            self.w["conv1"],
            norm[64:96],
            norm[96:],
            self.batch,
        )

    def _convolution(self, number, x, side, channels_in, channels_out):
        y = self._array(f"y{number}", side * side * channels_out)
        n = self.batch * side * side * channels_out
        w = self.w[f"conv{number}"]
        self._plain("conv_forward", n, y, x, w, self.batch, side, channels_in, channels_out)

    def _statistics_from_moments(self):
        moments = self._array("moments", 17 * 16, np.float64, digits=False)
        norm = self._array("norm1", 4 * 32, digits=False)
        self._theirs("patch_moments", min(self.batch, 1024), moments, self.images, self.batch)
        w = self.w
        stored = "not_stored" not in self.ideas
        given = w["conv1"], w["gamma1"], w["beta1"], self.batch * PIXELS, stored
        self._blocks("fused.cu", "norm_from_moments", 1, norm, moments, *given)

    def _norm_to_pool(self, number, p, side, channels):
        y = self._array(f"y{number}", side * side * channels)
        norm = self._array(f"norm{number}", 4 * channels, digits=False)
        count = self.batch * side * side
        gamma, beta = self.w[f"gamma{number}"], self.w[f"beta{number}"]
        if number == 2 or "moments" not in self.ideas:
            how = norm, y, gamma, beta, count, channels
            self._blocks("plain.cu", "statistics", channels, *how)
        n = count * channels
        if "forward" in self.ideas:
            scale, shift = norm[2 * channels : 3 * channels], norm[3 * channels :]
            sizes = self.batch * side, side, channels
            self._theirs("bn_relu_pool", min(n // 1024 + 1, 4096), p, y, scale, shift, *sizes)
            return
        z = self._array(f"z{number}", side * side * channels)
        self._plain("norm_forward", n, z, y, norm, n, channels)
        self._plain("relu_forward", n, z, z, n)
        winner = self._array(f"winner{number}", side * side * channels // 4, np.uint8)
        self._plain("pool_forward", n // 4, p, winner, z, n // 4, side, channels)

    def _hidden(self, p2):
        """The first linear layer and its ReLU."""
        h, w, bias = self._array("h", HIDDEN), self.w["fc1"], self.w["fc1_bias"]
        n = self.batch * HIDDEN
        if "splits" not in self.ideas:
            self._plain("linear_forward", n, h, p2, w, bias, self.batch, FEATURES, HIDDEN)
            self._plain("relu_forward", n, h, h, n)
            return h
        turned = self._array("fc1_turned", HIDDEN * FEATURES, digits=False)
        blocks = (w.size + THREADS - 1) // THREADS
        self._blocks("fused.cu", "before_split_sums", blocks, turned, h, w, HIDDEN, FEATURES, n)
        grid = self.batch, PARTS_OF_FC1
        self._theirs("split_sums", grid, h, p2, turned, FEATURES, PARTS_OF_FC1, threads=HIDDEN)
        self._blocks("fused.cu", "bias_and_relu", (n + THREADS - 1) // THREADS, h, bias, HIDDEN, n)
        return h

    def _end(self, h):
        """From the hidden values to their gradient in front of the ReLU."""
        w, dw, plain, batch = self.w, self.dw, self._plain, self.batch
        if "head" in self.ideas:
            out = self.out
            self._blocks("fused.cu", "clear", 64, out, out.size)
            given = h, w["fc2"], w["fc2_bias"], self.labels, batch
            self._theirs("head", min((batch + 7) // 8, 1024), out, *given)
            return self._dh
        logits, dlogits = self._array("logits", CLASSES), self._array("dlogits", CLASSES)
        losses = self._array("losses", 1)
        sizes = batch, HIDDEN, CLASSES
        plain("linear_forward", batch * CLASSES, logits, h, w["fc2"], w["fc2_bias"], *sizes)
        plain("cross_entropy", batch, losses, dlogits, logits, self.labels, batch)
        loss = self._array("loss", 1, digits=False)
        plain("sum_over_batch", 1, loss, losses, batch, 1)
        plain("linear_backward_weight", CLASSES * HIDDEN, dw["fc2"], dlogits, h, *sizes)
        plain("sum_over_batch", CLASSES, dw["fc2_bias"], dlogits, batch, CLASSES)
        dh = self._array("dh", HIDDEN)
        plain("linear_backward_input", batch * HIDDEN, dh, dlogits, w["fc2"], *sizes)
        plain("relu_backward", batch * HIDDEN, dh, dh, h, batch * HIDDEN)
        return dh

    def _back_through_block(self, number, dp, x, side, channels_in, channels_out):
        y = self._array(f"y{number}", side * side * channels_out)
        dy = self._array(f"dy{number}", side * side * channels_out)
        norm = self._array(f"norm{number}", 4 * channels_out, digits=False)
        sums = self._both(number)
        n = self.batch * side * side * channels_out
        if "backward" in self.ideas:
            how = side, channels_out
            windows = n // channels_out // 4
            given = sums, dp, y, norm, windows, *how
            self._blocks("fused.cu", "block_sums", channels_out, *given)
            given = dy, dp, y, norm, sums, n // 4, *how
            self._blocks("fused.cu", "block_backward", (n // 4 + THREADS - 1) // THREADS, *given)
        else:
            winner = self._array(f"winner{number}", n // self.batch // 4, np.uint8)
            z = self._array(f"z{number}", n // self.batch)
            self._plain("pool_backward", n // 4, dy, dp, winner, n // 4, side, channels_out)
            self._plain("relu_backward", n, dy, dy, z, n)
            given = sums, dy, y, norm, n // channels_out, channels_out
            self._blocks("plain.cu", "norm_backward_sums", channels_out, *given)
            self._plain("norm_backward", n, dy, dy, y, norm, sums, n, channels_out)
        size = SIZES[f"conv{number}"]
        share = self._array(f"share{number}", size)
        sizes = self.batch, side, channels_in, channels_out
        self._plain("conv_backward_weight", self.batch * size, share, dy, x, *sizes)
        self._plain("sum_over_batch", size, self.dw[f"conv{number}"], share, self.batch, size)

    def _both(self, number):
        """Gradients of gamma and beta, which lie side by side."""
        first = 288 if number == 1 else 288 + 64 + SIZES["conv2"]
        return self._gradients[first : first + 2 * SIZES[f"gamma{number}"]]

    def _back_through_first(self, dp):
        sums = self._array("sums1", 320, digits=False)
        norm, moments = self._arrays["norm1"], self._arrays["moments"]
        w, dw = self.w["conv1"], self.dw
        windows = self.batch * 196
        self._blocks("fused.cu", "conv1_backward", 32, sums, self.images, w, norm, dp, windows)
        given = dw["conv1"], dw["gamma1"], dw["beta1"], moments, sums, w, norm, 4 * windows
        self._blocks("fused.cu", "conv1_gradients", 1, *given)

    def _update(self):
        if "update" in self.ideas:
            given = self._weights, self._gradients, ALL, 1, self.lr
            self._theirs("update", min(ALL // 1024, 1024), *given)
            return
        for name, size in SIZES.items():
            self._plain("sgd", size, self.w[name], self.dw[name], self.lr, size)

    # ---- what came of it

    @property
    def loss(self) -> float:
        """Of the last step."""
        if "head" in self.ideas:
            return float(
                self.out[11 * HIDDEN + CLASSES : 11 * HIDDEN + CLASSES + 1].copy_to_host()[0]
            )
        return float(self._arrays["loss"].copy_to_host()[0])

    def weights(self) -> dict[str, np.ndarray]:
        """By PyTorch's names and shapes."""
        return self._unpacked(self._weights)

    def gradients(self) -> dict[str, np.ndarray]:
        """Of the last step."""
        return self._unpacked(self._gradients)

    def _unpacked(self, array):
        packed = np.zeros((), fast.LAYOUT)
        for name, part in self._parts(array.copy_to_host()).items():
            field = packed[NAMES[name]]
            field[...] = part[: field.size].reshape(field.shape)
        return fast.unpack(packed)


@yours.cache
def _good(name):
    return getattr(cuda_c.load(sockets.SOCKETS[name].good), name)


# ---- the finished trainer's arrays (kernels/network.cuh), in bytes for a digit

IMAGE, Y2, POOLED2 = PIXELS, 196 * 64 * 2, FEATURES * 2  # two bytes a number
PARTS, DH = HIDDEN * 4, HIDDEN * 2
#: What each of its kernels reads and writes.
FINISHED = {
    "patch_moments": IMAGE,
    "conv_forward": IMAGE + Y2 + POOLED2,
    "fc1_forward": POOLED2 + PARTS,
    "head": PARTS + DH,
    "fc1_backward": DH + POOLED2 + POOLED2,
    "conv_backward_input": IMAGE + Y2 + POOLED2,
    "conv_backward_weights": IMAGE + Y2 + POOLED2,
    "update": 0,
}
P1 = 196 * 32 * 4  # what conv1_pool hands on, as floats
#: What a kernel of the learner's adds: floats where ours keeps numbers in registers.
ADDED = {
    "conv1_pool": P1 + P1,
    # zeros; values from parts; read, then written; and handed on
    "head": 4 * HIDDEN + (PARTS + 4 * HIDDEN) + 4 * HIDDEN + (4 * HIDDEN + DH),
}


def finished_kilobytes(mine: Mapping = fast.Trainer.mine) -> float:
    """What the fast trainer's launches are handed for a digit, with kernels of the learner's."""
    return (sum(FINISHED.values()) + sum(ADDED.get(name, 0) for name in mine)) / 1e3
