"""cuTile kernels that were compiled elsewhere, launched from their machine code.

cuTile's compiler needs no GPU, and its machine code no cuTile. A kernel's arguments are, for each
array, a pointer, its lengths and its strides (int32): calling convention cutile_python_v1.
"""

import re
from ctypes import c_int32
from pathlib import Path

import torch

#: matmul_persistent-128x256x64-c1-t384.cubin: kernel, tile, thread blocks a cluster, threads
_NAME = re.compile(r"(?P<kernel>\w+)-(?P<tile>\d+x\d+x\d+)-c(?P<ctas>\d+)-t(?P<threads>\d+)\.cubin")


def variants(folder: Path) -> dict:
    """name -> what makes multiply(c, a, b), for each machine code file in a folder."""
    found = {}
    for path in sorted(Path(folder).glob("*.cubin")):
        match = _NAME.fullmatch(path.name)
        if match:
            label = f"cutile {path.stem}"
            found[label] = lambda path=path, match=match: _multiply(path, match)
    return found


def _multiply(path: Path, match: re.Match):
    from cuda.core import LEGACY_DEFAULT_STREAM, Device, LaunchConfig, ObjectCode, launch

    Device().set_current()
    kernel = ObjectCode.from_cubin(path.read_bytes()).get_kernel("matmul")
    bm, bn, _ = map(int, match["tile"].split("x"))
    ctas, threads = int(match["ctas"]), int(match["threads"])
    persistent = match["kernel"] == "matmul_persistent"
    multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count

    def multiply(c, a, b):
        tiles = -(-c.shape[0] // bm) * -(-c.shape[1] // bn)
        blocks = min(multiprocessors // ctas, tiles) if persistent else tiles
        numbers = [number for matrix in (c, a, b) for number in _arguments(matrix)]
        config = LaunchConfig(grid=blocks * ctas, block=threads)
        launch(LEGACY_DEFAULT_STREAM, config, kernel, *numbers)

    return multiply


def _arguments(matrix: torch.Tensor) -> list:
    lengths = [c_int32(number) for number in (*matrix.shape, *matrix.stride())]
    return [matrix.data_ptr(), *lengths]
