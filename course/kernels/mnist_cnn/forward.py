"""The forward pass by the chapter's own kernels, called from Python one by one."""

import numpy as np
from numba import cuda

from course.kernels.mnist_cnn import EPS
from course.kernels.mnist_cnn.tried import load

KERNELS = (
    "scale_pixels",
    "conv_forward",
    "norm_statistics",
    "norm_forward",
    "relu_forward",
    "pool_forward",
    "linear_forward",
)


class Forward:
    """Logits [B, 10] of uint8 images [B, 28, 28].

    weights: float32 arrays by PyTorch's names. The kernels are the chapter's, as cells left them.
    """

    def __init__(self, weights: dict[str, np.ndarray]):
        self.weights = {name: cuda.to_device(value) for name, value in weights.items()}
        self.kernels = {name: load(name) for name in KERNELS}

    def __call__(self, images: np.ndarray) -> np.ndarray:
        B = len(images)
        pixels = cuda.to_device(np.ascontiguousarray(images))
        x = self.launch("scale_pixels", images.size, pixels, images.size)
        p1 = self.block(x, 1, B, 1, 32, 28)
        p2 = self.block(p1, 2, B, 32, 64, 14)
        h = self.linear(p2, "fc1", B, 3136, 128)
        h = self.launch("relu_forward", h.size, h, h.size)
        logits = self.linear(h, "fc2", B, 128, 10)
        return logits.copy_to_host().reshape(B, 10)

    def block(self, x, number, B, C, K, side):
        """Convolution, batch norm, ReLU, max-pooling: [B, K, side / 2, side / 2]."""
        places = side * side
        n = B * K * places
        weight, gamma, beta = self.weights_of_block(number)
        y = self.launch("conv_forward", n, x, weight, B, C, K, side, side)
        mean, invstd = self.statistics(y, B, K, places)
        a = self.launch("norm_forward", n, y, mean, invstd, gamma, beta, B, K, places)
        a = self.launch("relu_forward", n, a, n)
        winner = cuda.device_array(n // 4, np.uint8)
        return self.launch("pool_forward", n // 4, winner, a, B * K, side, side)

    def weights_of_block(self, number):
        """The convolution's weights, gamma, beta."""
        names = f"conv{number}.weight", f"bn{number}.weight", f"bn{number}.bias"
        return [self.weights[name] for name in names]

    def statistics(self, y, B, K, places):
        """Mean and inverse deviation of each channel."""
        mean = cuda.device_array(K, np.float32)
        invstd = cuda.device_array(K, np.float32)
        self.kernels["norm_statistics"][K, 256](mean, invstd, y, B, K, places, np.float32(EPS))
        return mean, invstd

    def linear(self, x, layer, B, K, N):
        """Rows of N from rows of K."""
        weight = self.weights[f"{layer}.weight"]
        bias = self.weights[f"{layer}.bias"]
        return self.launch("linear_forward", B * N, x, weight, bias, B, K, N)

    def launch(self, kernel, size, *arguments):
        """One thread an element of a new array, which is returned."""
        out = cuda.device_array(size, np.float32)
        self.kernels[kernel][(size + 255) // 256, 256](out, *arguments)
        return out
