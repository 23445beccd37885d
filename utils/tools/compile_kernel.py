"""The child process of utils.tools.machine_code: compiles one Python kernel without a driver.

Run as ``python -P compile_kernel.py FOLDER``. FOLDER holds request.json and learners_kernel.py, the
kernel's source; it gets out.ptx, out.cubin (Triton) and answer.json with `made`, `missing` or
`error`. It does not import utils, which would put Numba and Triton on the CPU engines.
"""

import json
import sys
from pathlib import Path


def main(folder: str | Path) -> None:
    folder = Path(folder)
    request = json.loads((folder / "request.json").read_text())
    try:
        answer = {"numba": with_numba, "triton": with_triton}[request["compiler"]](folder, request)
    except ImportError as error:
        answer = {"missing": str(error)}
    except Exception as error:
        # cuda.pathfinder's and NVVM's own types, by name: they are only there if the packages are
        absent = type(error).__name__ in (
            "DynamicLibNotFoundError",
            "NvvmSupportError",
            "CudaSupportError",
        )
        answer = {"missing" if absent else "error": f"{type(error).__name__}: {error}"[-1500:]}
    (folder / "answer.json").write_text(json.dumps(answer))


def with_numba(folder: Path, request: dict) -> dict[str, str]:
    import math

    import numba
    import numba_cuda
    import numpy
    from numba import cuda

    names = {
        "cuda": cuda,
        "np": numpy,
        "numpy": numpy,
        "math": math,
        "numba": numba,
        **vars(numba.types),
    }
    kernel = load(folder, names)[request["name"]]
    arguments, _ = numba.core.sigutils.normalize_signature(request["signature"])
    ptx, _ = cuda.compile_ptx(
        kernel.py_func, arguments, cc=divmod(request["cc"], 10), lineinfo=True
    )
    (folder / "out.ptx").write_text(ptx)
    return {"made": f"numba-cuda {numba_cuda.__version__}"}


def with_triton(folder: Path, request: dict) -> dict[str, str]:
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = load(folder, {"triton": triton, "tl": tl})[request["name"]]
    types = {
        name: t if isinstance(t, str) else "constexpr" for name, t in request["arguments"].items()
    }
    values = {name: t for name, t in request["arguments"].items() if not isinstance(t, str)}
    aligned = {
        (n,): [["tt.divisibility", 16]]
        for n, name in enumerate(kernel.arg_names)
        if types[name].startswith(("*", "i"))
    }
    source = ASTSource(kernel, signature=types, constexprs=values, attrs=aligned)
    compiled = triton.compile(source, target=GPUTarget("cuda", request["cc"], 32))
    (folder / "out.ptx").write_text(compiled.asm["ptx"])
    (folder / "out.cubin").write_bytes(compiled.asm["cubin"])
    return {"made": f"triton {triton.__version__}"}


def load(folder: Path, names: dict) -> dict:
    """The names that learners_kernel.py defines, run with `names` already there."""
    path = folder / "learners_kernel.py"
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names


if __name__ == "__main__":
    main(sys.argv[1])
