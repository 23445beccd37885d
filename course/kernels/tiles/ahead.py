"""Triton and Gluon kernels compiled for GPUs that are not here, every stage kept.

    stages = ahead.compile_for(file, "add", {"x": "*fp32", "n": "i32", "BLOCK": 1024}, cc=[80, 90])
    stages[90].count("wgmma")

No GPU and no driver is needed. A child process compiles (`ahead_child`): here Triton may be on the
CPU engine.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from utils.tools import process
from utils.tools.machine_code import find_tool
from utils.tools.source import Listing

CHILD = Path(__file__).with_name("ahead_child.py")
SECONDS = 180
FACTS = ("made", "seconds", "shared", "warps")
TRITON = ("ttir", "ttgir", "llir", "ptx", "sass")


class NotCompiled(RuntimeError):
    """Triton's compiler refused a kernel; the text is its message."""


@dataclass(frozen=True)
class Compiled:
    """One kernel for one architecture: the text of each stage, and facts.

    texts: ttir, ttgir, llir, ptx and, where nvdisasm is found, sass. seconds: to compile. shared:
    bytes of shared memory a program.
    """

    kernel: str
    cc: int
    made: str
    texts: dict
    seconds: float
    shared: int
    warps: int

    def count(self, words: str, stage: str = "ptx") -> int:
        """How many lines of a stage hold these words (a regular expression)."""
        found = [line for line in self.lines(stage) if re.search(words, line)]
        return len(found)

    def lines(self, stage: str) -> list[str]:
        """The lines of a stage, without locations in the source."""
        text = self.texts.get(stage, "")
        kept = [
            re.sub(r" loc\([^()]*(\([^()]*\))*[^()]*\)", "", line) for line in text.splitlines()
        ]
        return [line for line in kept if line.strip() and not line.lstrip().startswith("#loc")]

    def instruction(self, name: str) -> str:
        """The first machine instruction of this name; "-" where there is none, or no nvdisasm."""
        for line in self.lines("sass"):
            found = re.search(rf"\b{name}\b[^;]*;", line)
            if found:
                return found.group()
        return "-"

    def show(
        self,
        stage: str,
        words: str = "",
        lines: int = 20,
    ) -> Listing:
        """The first lines of a stage that hold these words."""
        found = [line for line in self.lines(stage) if re.search(words, line)]
        shortened = [line.rstrip()[:118] for line in found[:lines]]
        return Listing("\n".join(shortened), language="")


def compile_for(
    path,
    kernel: str,
    arguments: dict,
    cc=(90,),
    **options,
) -> dict[int, Compiled]:
    """A kernel of a Python file, compiled for each compute capability (80 for 8.0).

    arguments: of each, in order, its type ("*fp32", "i32") or, of a tl.constexpr, its value.
    options: num_warps, num_stages. Raises NotCompiled.
    """
    requests = [
        {
            "file": str(path),
            "kernel": kernel,
            "cc": number,
            "options": options,
            "arguments": arguments,
        }
        for number in cc
    ]
    return dict(zip(cc, compiled(requests), strict=True))


def compiled(requests: list[dict]) -> list[Compiled]:
    """Several kernels at once, in one child process; each request as in `compile_for`."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "requests.json").write_text(json.dumps(requests))
        environment = {**os.environ, "TRITON_INTERPRET": "0"}
        done = process.run(
            [sys.executable, "-P", str(CHILD), str(folder)], timeout=SECONDS, env=environment
        )
        return [_read(folder, n, request, done) for n, request in enumerate(requests)]


def _read(folder: Path, number: int, request: dict, done) -> Compiled:
    file = folder / f"{number}.json"
    if not file.exists():
        raise NotCompiled(done.output[-2000:])
    answer = json.loads(file.read_text())
    if "error" in answer:
        raise NotCompiled(f"{request['kernel']} for {request['cc']}: {answer['error']}")
    facts = {name: answer.pop(name) for name in FACTS}
    texts = answer | _disassembled(folder / f"{number}.cubin")
    return Compiled(request["kernel"], request["cc"], texts=texts, **facts)


def _disassembled(cubin: Path) -> dict:
    """{"sass": machine code}, or nothing where no nvdisasm reads it."""
    tool = find_tool("nvdisasm")
    if not tool:
        return {}
    done = subprocess.run(
        [tool, "-c", str(cubin)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if done.returncode:
        return {}
    return {"sass": done.stdout}


def arguments_of_matmul(
    bm: int,
    bn: int,
    bk: int,
    group: int = 8,
    **constants,
) -> dict:
    """The arguments' types of the matmuls with descriptors in `matmul.py`, in bf16."""
    parts = 2 if constants.get("HALVES") else 1
    return {
        "c": f"tensordesc<bf16[{bm}, {bn // parts}]>",
        "a": f"tensordesc<bf16[{bm}, {bk}]>",
        "b": f"tensordesc<bf16[{bk}, {bn}]>",
        **dict.fromkeys("mnk", "i32"),
        **{
            "BM": bm,
            "BN": bn,
            "BK": bk,
            "GROUP": group,
        },
        **constants,
    }


def arguments_of_gluon(
    bm: int,
    bn: int,
    bk: int,
    stages: int,
    group: int = 8,
) -> dict:
    """The arguments' types of `gluon_matmul.matmul_gluon`, in bf16, written in two parts."""
    layout = (
        "NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2, "
        "transposed=False, fp4_padded=False, cga_layout=[])"
    )
    return {
        "c": f"tensordesc<bf16[{bm // 2}, {bn // 2}],{layout}>",
        "a": f"tensordesc<bf16[{bm // 2}, {bk}],{layout}>",
        "b": f"tensordesc<bf16[{bk}, {bn}],{layout}>",
        "STAGES": stages,
        "GROUP": group,
        "REGISTERS": 232,
    }
