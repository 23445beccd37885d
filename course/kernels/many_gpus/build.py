"""Builds this folder's CUDA C sources as shared libraries, once for each content."""

from pathlib import Path

from utils.cpu.cuda_c import build as cpu_build
from utils.engine import has_gpu
from utils.tools import nvcc, yours

HERE = Path(__file__).parent
#: What a library is made from: a change in any of these files makes a new one.
FOLDERS = (HERE / "kernels", HERE.parent / "mnist_cnn" / "kernels")
SOURCES = [HERE / "kernels" / name for name in ("communicator.cu", "trainer.cu")]
FLAGS = ["-O3", "-shared", "-Xcompiler", "-fPIC"]


def library(source: Path, flags: list[str] = ()) -> Path:
    """The shared library of a source, for this GPU, or for the CPU where there is none.

    It is built with what the learner changed in these files, if anything (`utils.tools.yours`).
    On the CPU it holds all sources: there each library is a device with memory of its own.
    Raises utils.tools.nvcc.NvccError with the lines that do not compile.
    """
    if not has_gpu():
        try:
            files = [str(yours.current(file)) for file in SOURCES]
            built = cpu_build.build(
                files,
                list(flags),
                check=False,
                shared=True,
            )
            return built[0]
        except cpu_build.BuildError as error:
            raise nvcc.compile_error(source, error.log) from None
    theirs = yours.current(source)
    request = nvcc.Request(theirs, [*FLAGS, *flags])
    folders = FOLDERS if theirs == source else [theirs.parent, *FOLDERS]
    files = [file for folder in folders for file in folder.iterdir() if file.is_file()]
    return nvcc.build_once(request, f"{source.stem}.so", files)
