"""Plain C and C++ through %nvcc: the same compiler, flags and output with and without a GPU."""

from pathlib import Path

import pytest

from utils.cpu.cuda_c.options import is_plain
from utils.tools import nvcc, plain_cpp

HELLO = '#include <cstdio>\nint main() { printf("hello\\n"); return 0; }\n'


@pytest.fixture
def source(tmp_path, monkeypatch):
    """Write a source into a fresh folder that is the current one."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="prog.cpp"):
        Path(name).write_text(text)
        return Path(name)

    return write


@pytest.mark.parametrize(
    "name, text, plain",
    [
        ("a.cpp", "#include <cstdio>\n", True),
        ("a.c", "#include <stdio.h>\n", True),
        ("a.cpp", '#include "cudnn.h"\n', False),
        ("a.cpp", "#include <cuda_runtime.h>\n", False),
        ("a.cc", "  #  include <cublas_v2.h>\n", False),
        ("a.cpp", "// #include <cuda_runtime.h>\n#include <vector>\n", True),
        ("a.cpp", "#include <cuchar>\n#include <curses.h>\n", True),
        ("a.cu", "#include <cstdio>\n", False),
    ],
)
def test_what_is_plain(source, name, text, plain):
    assert is_plain(source(text, name)) == plain


def test_flags(source):
    path = source(HELLO)
    line = plain_cpp.command(
        path, ["-g", "-arch=sm_90", "-Xcompiler", "-Wall,-Wextra", "-Xcompiler=-O1"], Path("prog")
    )
    assert line[-8:] == ["-std=c++17", "-g", "-Wall", "-Wextra", "-O1", "prog.cpp", "-o", "prog"]
    assert "-std=c++17" not in plain_cpp.command(path, ["-std=c++20"], Path("prog"))
    assert "-std=c++17" not in plain_cpp.command(source("int main() {}", "a.c"), [], Path("a"))


def test_builds_and_runs_beside_its_source(source, capfd):
    nvcc.main([str(source(HELLO)), "--run"])
    assert capfd.readouterr().out.endswith("$ prog\nhello\n")
    assert Path("prog").is_file()


def test_failures_raise(source):
    with pytest.raises(nvcc.NvccError, match="exit status 3"):
        nvcc.main([str(source("int main() { return 3; }")), "--run"])
    with pytest.raises(nvcc.NvccError, match="line 1: .*ten"):
        nvcc.main([str(source("int main() { return ten; }")), "--run"])


def test_without_a_compiler_it_says_how_to_get_one(source, monkeypatch):
    from utils.cpu.cuda_c import build

    def none():
        raise build.BuildError(build.NO_COMPILER)

    monkeypatch.setattr(build, "compiler", none)
    with pytest.raises(nvcc.NvccError, match="sudo apt install g\\+\\+"):
        nvcc.main([str(source(HELLO)), "--run"])
