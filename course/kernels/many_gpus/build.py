"""Builds this folder's CUDA C sources as shared libraries, once for each content."""

import hashlib
import os
import tempfile
from pathlib import Path

from utils.cpu.cuda_c import build as cpu_build
from utils.engine import has_gpu
from utils.tools import nvcc, process

HERE = Path(__file__).parent
#: What a library is made from: a change in any of these files makes a new one.
FOLDERS = (HERE / "kernels", HERE.parent / "mnist_cnn" / "kernels")
SOURCES = [HERE / "kernels" / name for name in ("communicator.cu", "trainer.cu")]
FLAGS = ["-O3", "-shared", "-Xcompiler", "-fPIC"]


def library(source: Path, flags: list[str] = ()) -> Path:
    """The shared library of a source, for this GPU, or for the CPU where there is none.

    On the CPU it holds all sources: there each library is a device with memory of its own.
    Raises utils.tools.nvcc.NvccError with the lines that do not compile.
    """
    if not has_gpu():
        try:
            files = list(map(str, SOURCES))
            built = cpu_build.build(
                files,
                list(flags),
                check=False,
                shared=True,
            )
            return built[0]
        except cpu_build.BuildError as error:
            raise nvcc.compile_error(source, error.log) from None
    request = nvcc.Request(source, [*FLAGS, *flags])
    output = cpu_build.cache_folder() / f"{source.stem}-{_fingerprint(request)}.so"
    if not output.exists():
        _compile(request, output)
    return output


def _fingerprint(request: nvcc.Request) -> str:
    """A name for what nvcc is asked to do and for all files that it may read."""
    words = nvcc.nvcc_command(request, Path("x"))
    version = nvcc.nvcc_version() or ""
    content = hashlib.sha256("\0".join([*words, version]).encode())
    for folder in FOLDERS:
        for file in sorted(folder.iterdir()):
            content.update(file.read_bytes())
    return content.hexdigest()[:32]


def _compile(request: nvcc.Request, output: Path) -> None:
    """Run nvcc; the library appears whole or not at all, also when several processes build it."""
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        fresh = Path(folder) / output.name
        done = process.run(nvcc.nvcc_command(request, fresh), timeout=300)
        if done.returncode:
            raise nvcc.compile_error(request.source, done.output)
        os.replace(fresh, output)
