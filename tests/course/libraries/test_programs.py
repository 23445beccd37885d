"""The programs of cuda/: how they are built, that traps fail as they say, and that errors show."""

import re

import pytest

from course.libraries import programs
from tests.processes import completed
from utils.tools import nvcc, yours

NAMES = sorted(path.stem for path in programs.FOLDER.glob("*.cu"))


@pytest.mark.parametrize("name", NAMES)
def test_every_library_of_a_program_is_known(name):
    text = (programs.FOLDER / f"{name}.cu").read_text()
    library = re.findall(
        r"#include <((?:cu(?:blas|fft|rand|sparse|dnn)|cutlass/cutlass)\S*)>", text
    )
    assert set(library) <= set(programs.LIBRARY_OF)


def test_what_a_learner_writes_behind_nvcc():
    assert programs.link_flags(programs.FOLDER / "gemm.cu") == ["-lcublas"]
    assert programs.link_flags(programs.FOLDER / "pi.cu") == []
    assert programs.link_flags(programs.FOLDER / "sparse24.cu") == ["-lcusparse", "-lcusparseLt"]


def test_a_library_is_found_where_pip_puts_it(tmp_path, monkeypatch):
    place = tmp_path / "nvidia" / "cu13"
    for file in ("include/cublas_v2.h", "lib/libcublas.so.13", "lib/libcublasLt.so.13"):
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        (place / file).touch()
    monkeypatch.setattr(programs, "_include_folders", lambda: (place / "include",))
    flags = programs._found_flags("cublas_v2.h")
    assert flags == [
        f"-I{place}/include",
        f"-L{place}/lib",
        "-l:libcublas.so.13",
        f"-Xlinker=-rpath={place}/lib",
    ]
    with pytest.raises(programs.MissingLibrary, match="cufft.h was not found"):
        programs._found_flags("cufft.h")


def test_a_gpu_machine_without_the_library_runs_it_on_the_cpu(monkeypatch, capsys):
    monkeypatch.setattr(programs, "has_gpu", lambda: True)
    monkeypatch.setattr(programs, "_include_folders", lambda: ())
    programs.run("gemm")
    text = capsys.readouterr().out
    assert "cublas_v2.h was not found" in text and "runs on the CPU]" in text
    assert "gemm: largest error" in text


@pytest.mark.parametrize(
    "trap, lines",
    [
        (
            "leading_dimension",
            [
                "leading dimension 3: CUBLAS_STATUS_INVALID_VALUE, WRONG",
                "leading dimension 4: CUBLAS_STATUS_SUCCESS, WRONG",
                "leading dimension 6: CUBLAS_STATUS_SUCCESS, right",
            ],
        ),
        ("rows_and_columns", ["a, then b: WRONG", "b, then a: right"]),
        (
            "stream",
            [
                "one handle for all: NOT in my stream",
                "a handle of my own: the work is in my stream",
            ],
        ),
        (
            "late",
            [
                "the launch of a broken kernel: cudaSuccess",
                "waiting for it: cudaErrorIllegalAddress",
                "a right call of cuBLAS after it: CUBLAS_STATUS_EXECUTION_FAILED",
            ],
        ),
    ],
)
def test_a_trap_fails_and_then_is_right(trap, lines):
    text = programs.output_of("traps", trap)
    assert [line for line in lines if line not in text.splitlines()] == []
    assert str(programs.FOLDER) not in text


def test_tf32_rounds_more():
    errors = re.findall(r"largest error (\S+)", programs.output_of("traps", "tf32"))
    plain, rounded = map(float, errors)
    assert plain < 2e-5 and rounded > 50 * plain


@pytest.mark.parametrize("sizes", [(), (33, 17, 65), (1, 1, 1), (2, 64, 3)])
def test_a_product_is_right_in_odd_sizes(sizes):
    assert "right" in programs.output_of("gemm", *sizes)


def test_philox_takes_an_odd_count_of_normal_numbers():
    assert "7 normal numbers: status 0" in programs.output_of("random_host")


@pytest.mark.parametrize("body", ['require("this", 0.5, 0.1);', "CHECK(cudaErrorUnknown);"])
def test_a_wrong_result_or_status_ends_the_program(body, tmp_path, monkeypatch):
    (tmp_path / "helpers.cuh").write_text((programs.FOLDER / "helpers.cuh").read_text())
    program = f'#include "helpers.cuh"\nint main() {{\n    {body}\n}}\n'
    (tmp_path / "wrong.cu").write_text(program)
    monkeypatch.setattr(programs, "FOLDER", tmp_path)
    with pytest.raises(RuntimeError, match="failed: (this: .* WRONG|line 3: status 999)"):
        programs.output_of("wrong")


def test_a_program_is_built_as_a_cell_left_it_and_a_wrong_one_is_no_error(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    cell = yours.region_of("libraries/gemm.cu multiply")
    theirs = cell.of(cell.file.read_text()).replace("b, n, a, k", "a, k, b, n")
    monkeypatch.setattr(yours, "_begun", {})
    monkeypatch.setattr(yours, "_edits", {})
    assert yours.put(cell, theirs) == 1
    programs.tried("gemm", 3, 3, 3)
    text = capsys.readouterr().out
    assert "[yours: 1 line of gemm.cu]" in text and "WRONG" in text
    assert "leak" not in text and str(tmp_path) not in text
    yours.put(cell, theirs.replace("n, &beta", "n; &beta"))
    programs.tried("gemm", 3, 3, 3)
    assert "gemm.cu does not compile" in capsys.readouterr().out


def test_times_are_read():
    text = "gemm: right\nTIME gemm 0.250000 0.001000\nTIME other 2 0\n"
    assert programs.times_of(text) == {"gemm": (0.25, 0.001), "other": (2.0, 0.0)}


@pytest.mark.parametrize("name", NAMES)
def test_nvcc_compiles_it_where_the_libraries_are(name, tmp_path):
    if not nvcc.find_nvcc():
        pytest.skip("no nvcc here")
    try:
        request = programs._request(programs.FOLDER / f"{name}.cu")
    except nvcc.NvccError as error:
        pytest.skip(str(error))
    if name in ("thrust", "cub", "cutlass_gemm"):
        pytest.skip("nvcc takes too long for it: course.libraries.bench builds it")
    command = nvcc.nvcc_command(request, tmp_path / "program.o")
    done = completed([*command, "-c"])
    assert done.returncode == 0, done.stderr
