"""Sockets of the fast trainer: kernels of the learner in the place of ours (kernels/sockets.cuh).

    fast.Trainer(weights, batch, lr, mine={"head": "build/head.cu"})

Each is checked against float64 before it is built in. `mine/slow` holds a starter for each, right
and slow, `mine/good` a good one; what is built in the end is one file of the learner's files, each
in a namespace of its own, so that their helpers may have any name.
"""

import ctypes
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from utils import check, cuda_c
from utils.cpu.cuda_c import cache
from utils.cpu.cuda_c.library import Library
from utils.cuda_c.device_code import HEADERS
from utils.cuda_c.signature import kernels_in
from utils.tools.diagnostics import LearnerError

FOLDER = Path(__file__).parent / "mine"
THREADS = 256  # of a block
BORDER = 0.328125  # what a pixel outside of the image counts; inside it is its byte - 33
MIDDLE = 33
HEAD_ROWS = 12  # of head's `out`, in front of the digits'


class SocketError(LearnerError):
    """A kernel that does not fit its socket: no such socket or file, wrong parameters, values."""


@dataclass(frozen=True)
class Socket:
    """A kernel that may be the learner's.

    inputs(rng, sizes) gives its arguments by name; the first is the output, as it is before the
    launch. reference(**arguments) is what it should be after, in float64.
    """

    name: str
    inputs: Callable
    reference: Callable
    sizes: tuple  # with which it is checked
    rtol: float = 1e-4

    @property
    def slow(self) -> Path:
        """The starter: right and slow."""
        return FOLDER / "slow" / f"{self.name}.cu"

    @property
    def good(self) -> Path:
        """A good one."""
        return FOLDER / "good" / f"{self.name}.cu"

    @functools.cached_property
    def signature(self):
        """What the kernel takes."""
        return kernels_in(self.slow.read_text(encoding="utf-8"))[self.name]


# ---- what they compute, in float64


def _digits(rng, batch):
    """Bytes of which no image is like another, with all values from 0 to 255."""
    return np.minimum(255, rng.gamma(0.3, 100, (batch, 28, 28))).astype(np.uint8)


def _normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def windows_of(images: np.ndarray) -> np.ndarray:
    """The 4 x 4 pixels that each pooling window sees: [batch, 14, 14, 4, 4] in float64."""
    pixels = images.astype(np.float64) - MIDDLE
    bordered = np.pad(pixels, ((0, 0), (1, 1), (1, 1)), constant_values=BORDER)
    view = np.lib.stride_tricks.sliding_window_view(bordered, (4, 4), axis=(1, 2))
    return view[:, ::2, ::2]


def moments_inputs(rng, sizes):
    """Digits; moments begin at zero."""
    (batch,) = sizes
    return {"moments": np.zeros((17, 16)), "images": _digits(rng, batch), "batch": batch}


def moments_of(moments, images, batch):
    """Sums of products and sums over all windows, added to what there was."""
    q = windows_of(images).reshape(-1, 16)
    return moments + np.vstack([q.T @ q, q.sum(0)])


def conv1_inputs(rng, sizes):
    """Digits, weights, and batch norm's two numbers a channel, of both signs."""
    (batch,) = sizes
    return {
        "pooled": check.poison((batch, 14, 14, 32)),
        "images": _digits(rng, batch),
        "weights": _normal(rng, 32, 9) / 3,
        "scale": _normal(rng, 32) / 100,
        "shift": _normal(rng, 32) / 2,
        "batch": batch,
    }


def pooled_of(pooled, images, weights, scale, shift, batch):
    """Convolution, batch norm, ReLU, pooling."""
    windows = windows_of(images)
    three = weights.astype(np.float64).reshape(32, 3, 3)
    largest = np.zeros((batch, 14, 14, 32))
    for dy in (0, 1):
        for dx in (0, 1):
            around = windows[..., dy : dy + 3, dx : dx + 3]
            y = np.einsum("nyxrc,krc->nyxk", around, three)
            largest = np.maximum(largest, y * scale.astype(np.float64) + shift)
    return largest


def head_inputs(rng, sizes):
    """A hidden layer's values behind its ReLU, the last layer's weights, labels."""
    (batch,) = sizes
    return {
        "out": np.zeros((HEAD_ROWS + batch, 128), np.float32),
        "hidden": np.maximum(_normal(rng, batch, 128), 0),
        "w": _normal(rng, 10, 128) / 8,
        "bias": _normal(rng, 10) * np.float32(rng.choice([1, 100])),
        "labels": rng.integers(0, 10, batch).astype(np.uint8),
        "batch": batch,
    }


def head_of(out, hidden, w, bias, labels, batch):
    """Gradients, the loss, and each digit's gradient, as kernels/sockets.cuh lays them out."""
    hidden, w, bias = (a.astype(np.float64) for a in (hidden, w, bias))
    logits = hidden @ w.T + bias
    shifted = logits - logits.max(1, keepdims=True)
    log_sum = np.log(np.exp(shifted).sum(1, keepdims=True))
    digits = np.arange(batch)
    gradient = np.exp(shifted - log_sum)
    gradient[digits, labels] -= 1
    gradient /= batch
    behind = np.where(hidden > 0, gradient @ w, 0)
    result = np.zeros(out.shape)
    result[:10] = gradient.T @ hidden
    result[10] = behind.sum(0)
    result[11, :10] = gradient.sum(0)
    result[11, 10] = (log_sum[:, 0] - shifted[digits, labels]).mean()
    result[HEAD_ROWS:] = behind
    return result


def update_inputs(rng, sizes):
    """Weights, and their gradient in parts."""
    count, splits = sizes
    return {
        "weights": _normal(rng, count),
        "parts": _normal(rng, splits, count),
        "count": count,
        "splits": splits,
        "rate": np.float32(rng.uniform(0.1, 1)),
    }


def updated(weights, parts, count, splits, rate):
    """A step downhill."""
    return weights.astype(np.float64) - float(rate) * parts.astype(np.float64).sum(0)


SOCKETS = {
    socket.name: socket
    for socket in (
        Socket("patch_moments", moments_inputs, moments_of, sizes=((1,), (5,))),
        Socket("conv1_pool", conv1_inputs, pooled_of, sizes=((1,), (5,))),
        Socket("head", head_inputs, head_of, sizes=((1,), (11,))),
        Socket("update", update_inputs, updated, sizes=((4, 1), (2068, 3))),
    )
}

# ---- a learner's file is held to its socket


def checked(mine: Mapping[str, str | Path]) -> dict[str, Path]:
    """The learner's files by socket, in the order of SOCKETS, each checked.

    Raises SocketError for a name that is no socket, a file that is not there, a kernel that is not
    there, takes other parameters or computes something else (which element, expected, got), and
    utils.cuda_c's CompileError for one that does not compile.
    """
    for name in mine:
        if name not in SOCKETS:
            raise SocketError(f"there is no socket {name!r}: there are {', '.join(SOCKETS)}")
    files = {name: Path(mine[name]).resolve() for name in SOCKETS if name in mine}
    for name, path in files.items():
        if not path.is_file():
            raise SocketError(
                f"your {name}: there is no file {mine[name]}. Run the cell that writes it "
                f"(%%writefile {mine[name]}) first"
            )
        check_kernel(SOCKETS[name], path)
    return files


def check_kernel(socket: Socket, path: Path) -> None:
    """Raises SocketError unless the kernel in a file is what its socket needs."""
    name = socket.name
    module = cuda_c.load(path)
    if name not in module.signatures:
        has = ", ".join(module.signatures)
        raise SocketError(f"your {name}: {path} has no kernel of that name; it has {has}")
    given, wanted = module.signatures[name], socket.signature
    if _types(given) != _types(wanted):
        raise SocketError(
            f"your {name} takes other parameters than the trainer hands it.\n"
            f"  the trainer's: {wanted}\n  yours:         {given}"
        )
    for sizes in socket.sizes:
        arguments = socket.inputs(np.random.default_rng(sum(sizes)), sizes)
        expected = socket.reference(**arguments)
        what = f"your {name}, {', '.join(f'{n}={v}' for n, v in _numbers(arguments).items())}"
        actual = run(module, name, arguments)
        try:
            check.close(actual, expected, rtol=socket.rtol, atol=1e-5, name=what, quiet=True)
        except check.CheckError as error:
            says = f"{error}\nNothing was trained: the kernel in {path.name} must be right first."
            raise SocketError(says) from None


def run(
    module: cuda_c.Module, name: str, arguments: Mapping, blocks=2, threads=THREADS
) -> np.ndarray:
    """The output of a kernel, its first argument, after one launch."""
    from numba import cuda

    arrays = [cuda.to_device(v) if isinstance(v, np.ndarray) else v for v in arguments.values()]
    getattr(module, name)[blocks, threads](*arrays)
    return arrays[0].copy_to_host()


def _numbers(arguments):
    return {name: value for name, value in arguments.items() if not isinstance(value, np.ndarray)}


def _types(signature):
    """What must agree: a pointer that may be written to takes no constant one."""
    return [(p.dtype or p.type, p.pointer, p.pointer and p.const) for p in signature.parameters]


# ---- what its threads ask for

ASKED = {"patch_moments": (8,), "conv1_pool": (8,), "head": (8,), "update": (1 << 14, 1)}
PARAMETERS = 421_738  # the network's weights
BATCH = 64  # over so many digits an update is shared out


def asked(name: str, path: str | Path) -> float:
    """Bytes that the kernel's threads ask of global memory for a digit, counted by the CPU runtime.

    However many of them a cache answers: what is asked for twice counts twice. Needs a C++
    compiler, and no GPU.
    """
    sizes = ASKED[name]
    arguments = SOCKETS[name].inputs(np.random.default_rng(0), sizes)
    library = Library(Path(path), check=True, headers=HEADERS)
    signature = SOCKETS[name].signature
    values, buffers = [], []
    for parameter, value in zip(signature.parameters, arguments.values(), strict=True):
        if isinstance(value, np.ndarray):
            pointer = ctypes.c_void_p(value.ctypes.data)
            values.append(pointer)
            buffers.append((pointer.value, value.nbytes, parameter.name))
        else:
            values.append(np.ctypeslib.as_ctypes_type(parameter.dtype)(value))
    library.launch(name, (4, 1, 1), (THREADS, 1, 1), 0, values, buffers=buffers)
    moved = library.counts()["global_bytes"]
    if name == "update":
        return moved / sizes[0] * PARAMETERS / BATCH
    return moved / sizes[0]


# ---- and built in

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b[^\n]*", re.M)


def unit(files: Mapping[str, Path]) -> str:
    """One CUDA C file of the learner's, and the table that the trainer takes (struct Sockets)."""
    includes = ["#include <cuda_runtime.h>", '#include "sockets.cuh"']
    parts = []
    for name, path in files.items():
        # here, as inside of a namespace they would declare something else
        includes += _INCLUDE.findall(path.read_text(encoding="utf-8"))
        parts.append(_launcher(SOCKETS[name], path))
    table = ", ".join(f"launch_{name}" if name in files else "nullptr" for name in SOCKETS)
    parts.append(
        'extern "C" const Sockets* cnn_mine() {\n'
        f"    static const Sockets mine = {{{table}}};\n"
        "    return &mine;\n}\n"
    )
    return "\n".join([*dict.fromkeys(includes), "", *parts])


def _launcher(socket: Socket, path: Path) -> str:
    """The learner's file in a namespace, and the function that launches its kernel."""
    name = socket.name
    parameters = ", ".join(map(str, socket.signature.parameters))
    names = ", ".join(p.name for p in socket.signature.parameters)
    return (
        f'namespace mine_{name} {{\n#include "{path}"\n}}\n'
        f"static cudaError_t launch_{name}(int blocks, cudaStream_t stream, {parameters}) {{\n"
        f"    mine_{name}::{name}<<<blocks, SOCKET_THREADS, 0, stream>>>({names});\n"
        "    return cudaGetLastError();\n}\n"
    )


def written(files: Mapping[str, Path]) -> Path:
    """That file, in the cache folder."""
    text = unit(files)
    content = [text, *(path.read_text(encoding="utf-8") for path in files.values())]
    folder = cache.cache_folder() / "sockets"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"mine-{cache.hash_of(*content)}.cu"
    if not path.exists():
        cache.atomically(path, lambda fresh: fresh.write_text(text, encoding="utf-8"))
    return path
