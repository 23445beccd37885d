"""The child process of `ahead`: compiles Triton and Gluon kernels for GPUs that are not here.

Run as ``python -P ahead_child.py FOLDER``. FOLDER holds requests.json, a list; each request gets a
file of its number: 0.json with the text of every stage, or `error`, and 0.cubin. It does not import
utils, which would put Triton on the CPU engine.
"""

import importlib.util
import json
import sys
import time
from pathlib import Path

TEXTS = ("ttir", "ttgir", "llir", "ptx")


def main(folder: Path) -> None:
    """Answer every request of the folder."""
    requests = json.loads((folder / "requests.json").read_text())
    for number, request in enumerate(requests):
        try:
            answer = compiled(request, folder / f"{number}.cubin")
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[-3000:]}
        (folder / f"{number}.json").write_text(json.dumps(answer))


def compiled(request: dict, cubin: Path) -> dict:
    """The stages of one kernel for one architecture; its machine code goes to `cubin`."""
    import triton
    from triton.backends.compiler import GPUTarget

    module = load(request["file"])
    kernel = getattr(module, request["kernel"])
    began = time.perf_counter()
    made = triton.compile(
        source_of(kernel, request["arguments"]),
        target=GPUTarget("cuda", request["cc"], 32),
        options=request["options"],
    )
    seconds = time.perf_counter() - began
    cubin.write_bytes(made.asm["cubin"])
    facts = {
        "made": f"triton {triton.__version__}",
        "seconds": seconds,
        "shared": made.metadata.shared,
        "warps": made.metadata.num_warps,
    }
    texts = {name: made.asm[name] for name in TEXTS if name in made.asm}
    return facts | texts


def source_of(kernel, arguments: dict):
    """What triton.compile takes: the kernel, its arguments' types, the values of its constexprs."""
    from triton.compiler import ASTSource
    from triton.experimental.gluon._runtime import GluonASTSource, GluonJITFunction

    types = {}
    values = {}
    aligned = {}
    for n, (name, value) in enumerate(arguments.items()):
        if not isinstance(value, str):
            types[name] = "constexpr"
            values[(n,)] = value
            continue
        types[name] = value
        if value.startswith(("*", "i")):
            aligned[(n,)] = [["tt.divisibility", 16]]
    kind = GluonASTSource if isinstance(kernel, GluonJITFunction) else ASTSource
    return kind(kernel, signature=types, constexprs=values, attrs=aligned)


def load(file: str):
    """A Python file as a module, under a name of its own."""
    spec = importlib.util.spec_from_file_location("kernels_to_compile", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(Path(sys.argv[1]))
