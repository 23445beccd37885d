"""Record the tables of rules on a GPU.

    python -m tests.conformance.rules.record [--out FOLDER] [--cuda-c] [--numba]

Writes `cuda_c.json` (needs nvcc) and `numba.json` (needs numba-cuda) to FOLDER, `recorded/` if it
is not given, and shows where a GPU and the rules differ: one of the two must be wrong.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.conformance.numba.record import gpu_facts as numba_facts
from tests.conformance.record import gpu_facts
from tests.processes import completed

from . import cuda_c, numba_cases

RECORDED = Path(__file__).with_name("recorded")
SHOWN = 12


def of_cuda_c(arch: str) -> list[int]:
    """What each case of cuda_c.py gives on this GPU."""
    codes = [code for code, _ in cuda_c.cases()]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "rules.cu"
        source.write_text(cuda_c.program(codes))
        program = Path(folder) / "rules"
        line = ["nvcc", f"-arch={arch}", "-std=c++17", "-w", "-o", str(program), str(source)]
        subprocess.run(line, check=True)
        done = completed([str(program)], check=True)
    return [int(line) for line in done.stdout.split()]


def of_numba(pair: tuple[str, str]) -> list:
    """What each case of a pair of types gives on this GPU: [as int64, as the bits of a float64]."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "cases.py"
        source.write_text(numba_cases.program(pair))
        done = completed([sys.executable, str(source)])
    if done.returncode:
        raise RuntimeError(done.stderr[-1500:])
    return json.loads(done.stdout)


def write(path: Path, content: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content) + "\n")


def record_cuda_c(folder: Path) -> None:
    facts, arch = gpu_facts()
    values = of_cuda_c(arch)
    write(folder / "cuda_c.json", {**facts, "values": values})
    show("CUDA C", [
        f"{code}  rule {right}, GPU {value}"
        for (code, right), value in zip(cuda_c.cases(), values, strict=True)
        if right != value
    ], len(values))  # fmt: skip


def record_numba(folder: Path) -> None:
    recorded = {}
    pairs = list(numba_cases.PAIRS)
    with ThreadPoolExecutor(8) as pool:  # compiling takes seconds, the GPU nothing
        for pair, answer in zip(pairs, pool.map(attempt(of_numba), pairs), strict=True):
            if isinstance(answer, str):
                print(f"{pair}: NOT recorded\n{answer}")
                continue
            recorded[" ".join(pair)] = answer
            write(folder / "numba.json", {**numba_facts(), "values": recorded})
            differences = numba_cases.differences(pair, answer)
            show(" ".join(pair), differences, len(numba_cases.cases(pair)))


def attempt(function: Callable) -> Callable:
    """The function, with the text of an error in place of its result."""

    def tried(argument):
        try:
            return function(argument)
        except Exception as error:
            return str(error)

    return tried


def show(name: str, differences: list[str], cases: int) -> None:
    print(f"{name}: {cases} cases, {len(differences)} differ from the rules", flush=True)
    print(*differences[:SHOWN], sep="\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=RECORDED, help="where to write")
    parser.add_argument("--cuda-c", action="store_true", help="only the table of CUDA C")
    parser.add_argument("--numba", action="store_true", help="only that of Numba")
    arguments = parser.parse_args()
    both = arguments.cuda_c == arguments.numba
    if both or arguments.cuda_c:
        record_cuda_c(arguments.out)
    if both or arguments.numba:
        record_numba(arguments.out)


if __name__ == "__main__":
    main()
