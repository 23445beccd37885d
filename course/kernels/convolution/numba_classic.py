"""A signal or a picture and one filter, in Numba: a thread an element, and tiles with a halo.
Pictures with channels (n, h, w, c), each channel with a filter of its own.

The results are as large as what is filtered ("same"); beyond its edges are zeros. Filters have an
odd number of taps a side.
"""

import numpy as np
from numba import cuda

BLOCK, MOST = 64, 33  # threads of a block of `tiled_1d`, and taps at most
TILE = BLOCK + MOST - 1  # elements of its tile: Numba wants the size by a constant's name
ACROSS, DOWN = 32, 8  # threads of a block of `tiled_2d`, pixels of its tile
SIDE = 5  # of the filters of `tiled_2d`, which sizes its shared memory
TILE_W, TILE_H = ACROSS + SIDE - 1, DOWN + SIDE - 1


@cuda.jit
def naive_1d(out, signal, taps):
    i = cuda.grid(1)
    if i >= out.size:
        return
    half = taps.size // 2
    total = np.float32(0)
    for t in range(taps.size):
        j = i + t - half
        if j >= 0 and j < signal.size:
            total += taps[t] * signal[j]
    out[i] = total


@cuda.jit
def tiled_1d(out, signal, taps):
    tile = cuda.shared.array(TILE, np.float32)
    first = cuda.blockIdx.x * BLOCK
    half = taps.size // 2
    for k in range(cuda.threadIdx.x, BLOCK + taps.size - 1, BLOCK):
        j = first + k - half
        tile[k] = signal[j] if j >= 0 and j < signal.size else np.float32(0)
    cuda.syncthreads()
    i = first + cuda.threadIdx.x
    if i < out.size:
        total = np.float32(0)
        for t in range(taps.size):
            total += taps[t] * tile[cuda.threadIdx.x + t]
        out[i] = total


@cuda.jit(device=True)
def pixel(picture, y, x):
    h, w = picture.shape
    inside = y >= 0 and y < h and x >= 0 and x < w
    return picture[y, x] if inside else np.float32(0)


@cuda.jit
def naive_2d(out, picture, taps):
    x, y = cuda.grid(2)
    if y >= out.shape[0] or x >= out.shape[1]:
        return
    half = taps.shape[0] // 2
    total = np.float32(0)
    for r in range(taps.shape[0]):
        for s in range(taps.shape[1]):
            total += taps[r, s] * pixel(picture, y + r - half, x + s - half)
    out[y, x] = total


@cuda.jit
def tiled_2d(out, picture, taps):
    tile = cuda.shared.array((TILE_H, TILE_W), np.float32)
    left = cuda.blockIdx.x * ACROSS
    top = cuda.blockIdx.y * DOWN
    half = SIDE // 2
    me = cuda.threadIdx.y * ACROSS + cuda.threadIdx.x
    for i in range(me, TILE_H * TILE_W, ACROSS * DOWN):
        r, s = i // TILE_W, i % TILE_W
        tile[r, s] = pixel(picture, top + r - half, left + s - half)
    cuda.syncthreads()
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        total = np.float32(0)
        for r in range(SIDE):
            for s in range(SIDE):
                total += taps[r, s] * tile[cuda.threadIdx.y + r, cuda.threadIdx.x + s]
        out[y, x] = total


@cuda.jit
def depthwise(out, x, taps):
    c, j, row = cuda.grid(3)
    n, h, w, channels = x.shape
    if c >= channels or j >= w or row >= n * h:
        return
    image, i = row // h, row % h
    half = taps.shape[0] // 2
    total = np.float32(0)
    for r in range(taps.shape[0]):
        for s in range(taps.shape[1]):
            y, z = i + r - half, j + s - half
            if y >= 0 and y < h and z >= 0 and z < w:
                total += taps[r, s, c] * x[image, y, z, c]
    out[image, i, j, c] = total


def grid_2d(picture) -> tuple:
    """Grid and block for a picture."""
    h, w = picture.shape
    return (-(-w // ACROSS), -(-h // DOWN)), (ACROSS, DOWN)
