"""CUB, NVIDIA's library of such algorithms, called from Python: the rival.

    sort = cub.Call("sort", "cub_sort_keys", keys, out)
    sort()

The temporary memory that CUB asks for is made before, so that no call has to wait for it.
"""

import ctypes
import hashlib
import subprocess
import tempfile
from pathlib import Path

import torch

from course.kernels.reductions.kernels import FOLDER
from utils.engine import run_arch
from utils.tools.nvcc import find_nvcc

LIBRARIES = ("scan", "sum", "sort")


class Call:
    """One call of CUB, ready to be made again and again.

    library: cuda/cub_<library>.cu; function: one of its functions; x, out: tensors on the GPU.
    Raises RuntimeError with nvcc's message or CUDA's error code.
    """

    def __init__(self, library: str, function: str, x, out):
        self._function = getattr(ctypes.CDLL(str(build(library))), function)
        self._x = x
        self._out = out
        size = ctypes.c_size_t(0)
        self._run(None, size)
        self._temporary = torch.empty(
            size.value,
            dtype=torch.uint8,
            device=x.device,
        )
        self._size = size

    def __call__(self) -> None:
        self._run(ctypes.c_void_p(self._temporary.data_ptr()), self._size)

    def _run(self, temporary, size):
        error = self._function(
            temporary,
            ctypes.byref(size),
            ctypes.c_void_p(self._x.data_ptr()),
            ctypes.c_void_p(self._out.data_ptr()),
            ctypes.c_int(self._x.numel()),
        )
        if error:
            raise RuntimeError(f"CUB failed with CUDA's error {error}")


def build(library: str) -> Path:
    """Path of the shared library, compiled by nvcc where it is not there yet (half a minute)."""
    source = FOLDER / f"cub_{library}.cu"
    text = source.read_bytes()
    name = f"cub_{library}_{hashlib.sha256(text).hexdigest()[:12]}.so"
    path = Path(tempfile.gettempdir()) / name
    if path.exists():
        return path
    unfinished = path.with_suffix(".tmp")
    command = [find_nvcc(), "-O3", f"-arch={run_arch()}", "-std=c++17", "-shared"]
    command += ["-Xcompiler", "-fPIC", "-o", str(unfinished), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    unfinished.replace(path)
    return path
