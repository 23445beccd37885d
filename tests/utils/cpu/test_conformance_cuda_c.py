"""The CPU engine for CUDA C prints what a GPU prints, in any order of threads and on any number of
cores, and
finds planted mistakes by name and line."""

import hashlib
import subprocess
import zlib

import numpy as np
import pytest

from tests.conformance import derive, fuzz, mistakes
from tests.conformance.record import flags
from tests.needs import cpp_compiler
from utils.cpu.cuda_c.build import BuildError, build_program, compiler
from utils.cpu.cuda_c.compiler import is_gcc

REFUSED = derive.FOLDER.with_name("refused")
PROGRAMS = sorted(path.stem for path in derive.FOLDER.glob("*.cu"))
SCHEDULES = [
    {},
    {"CUDA_CPU_THREADS": "1"},
    {"CUDA_CPU_THREADS": "2"},
    {"CUDA_CPU_SEED": "1", "CUDA_CPU_THREADS": "1"},
    {"CUDA_CPU_SEED": "2", "CUDA_CPU_THREADS": "2"},
    {"CUDA_CPU_SEED": "3"},
]
CLANG_MISSES = {
    "misaligned_float4": "clang++ copies a float4 as four floats, and does not check its address"
}
# The slow checks need builds of their own: only programs that share memory in one way or another
# run with them.
CHECKED = [
    "atomics_cas",
    "atomics_int",
    "barrier_counts",
    "cg_grid",
    "cg_tile",
    "cub_block",
    "fence_last_block",
    "half2",
    "histogram_shared",
    "libcu_barrier",
    "libcu_pipeline",
    "memory_functions",
    "producer_consumer",
    "ptx_copies",
    "ptx_wgmma",
    "scan_block",
    "shared_extern",
    "shared_kinds",
    "shared_static",
    "spin_between_blocks",
    "symbols_more",
    "thrust_basics",
    "tiled_matmul",
    "warp_masks",
    "warp_shuffle",
    "wmma_matmul",
]

SEVERAL_DEVICES = [name for name in PROGRAMS if name.startswith(("devices_", "nccl_"))]

cpp_compiler()


OTHERS = pytest.mark.nightly("the same programs, by day under one of the schedules each")
#: Whose programs take the longest to compile
LIBRARIES = "cub_", "cublas_", "cufft_", "curand_", "thrust_"
ALIKE = pytest.mark.one_in(3, "each program shows a few functions of its own")
OF_A_LIBRARY = pytest.mark.nightly("by day one program of each library, and those of the chapter")


def programs():
    """pytest.param(name) of each program, by day of a library the first; `make check` compiles one
    in eight.
    """
    seen = set()
    for number, name in enumerate(PROGRAMS):
        library = next((each for each in LIBRARIES if name.startswith(each)), None)
        marks = [pytest.mark.quick] if number % 8 == 0 else []
        marks += [OF_A_LIBRARY] if library in seen else []
        seen |= {library} - {None}
        yield pytest.param(name, marks=marks)


def by_day(name):
    """A program's schedule by day: the same one in each run, and all are somebody's."""
    return SCHEDULES[zlib.crc32(name.encode()) % len(SCHEDULES)]


def expect_a_gpus_output(name, schedules):
    source = derive.FOLDER / f"{name}.cu"
    executable = build_program(source, flags(source))
    expected = source.with_suffix(".out").read_text()
    for schedule in schedules:
        done = mistakes.run(executable, **schedule)
        assert (done.stdout, done.returncode) == (expected, 0), f"{schedule}\n{done.stderr}"


@ALIKE
@pytest.mark.parametrize("name", list(programs()))
def test_prints_what_a_gpu_prints(name):
    expect_a_gpus_output(name, [by_day(name)])


@OTHERS
@pytest.mark.parametrize("name", PROGRAMS)
def test_prints_it_under_every_other_schedule(name):
    expect_a_gpus_output(name, [each for each in SCHEDULES if each != by_day(name)])


def test_by_day_every_schedule_is_somebodys():
    theirs = [by_day(*param.values) for param in programs() if OF_A_LIBRARY not in param.marks]
    assert all(schedule in theirs[:: ALIKE.args[0]] for schedule in SCHEDULES)


@pytest.mark.parametrize(
    "check",
    [False, pytest.param(True, marks=pytest.mark.nightly("by day without the slow checks"))],
    ids=["fast", "check"],
)
@pytest.mark.parametrize("name", SEVERAL_DEVICES)
def test_several_devices_print_the_same_and_raise_no_alarm(name, check):
    if check and name == "devices_flags":
        pytest.skip("with --check one kernel runs at a time, and these wait for each other")
    source = derive.FOLDER / f"{name}.cu"
    executable = build_program(source, flags(source), check=check)
    expected = source.with_suffix(".out").read_text()
    for devices in ("2", "4"):
        done = mistakes.run(executable, CUDA_CPU_DEVICES=devices)
        assert (done.stdout, done.stderr, done.returncode) == (expected, "", 0), devices


@pytest.mark.nightly("by day the same checks raise no alarm in the right kernels of rules")
@pytest.mark.parametrize("name", CHECKED)
def test_slow_checks_have_nothing_to_say(name):
    source = derive.FOLDER / f"{name}.cu"
    done = mistakes.run(build_program(source, flags(source), check=True))
    assert (done.stdout, done.stderr) == (source.with_suffix(".out").read_text(), "")


def test_what_a_gpu_printed_is_what_was_derived():
    """Of each program, recorded or not: arithmetic and the manuals say what the GPU said."""
    assert sorted(derive.PROGRAMS) == PROGRAMS
    expected = {name: (derive.FOLDER / f"{name}.out").read_text() for name in PROGRAMS}
    assert {name: derive.PROGRAMS[name]() for name in PROGRAMS} == expected


LIKE_ANOTHER = pytest.mark.nightly("by day one mistake of each kind, with each set of checks")


def broken():
    """pytest.param(name) of each broken program, by day the first of which so much is expected."""
    seen = set()
    for source in sorted(mistakes.FOLDER.glob("*.cu")):
        words, _, mode = mistakes.expectation(source)
        yield pytest.param(source.stem, marks=[LIKE_ANOTHER] if (words, mode) in seen else [])
        seen.add((words, mode))


@pytest.mark.one_in(2, "each is another mistake, and eight files of them are tried whole")
@pytest.mark.parametrize("name", list(broken()))
def test_mistake_is_found(name):
    source = mistakes.FOLDER / f"{name}.cu"
    if name in CLANG_MISSES and not is_gcc(compiler()):
        pytest.skip(CLANG_MISSES[name])
    words, lines, _ = mistakes.expectation(source)
    found, said = mistakes.diagnosis(source)
    assert found, f"expected {words} at line {lines}, got:\n{said}"


@pytest.mark.parametrize(
    "seed", ["1", *(pytest.param(seed, marks=OTHERS) for seed in ("", "2"))], ids="seed {}".format
)
@pytest.mark.parametrize("source", mistakes.of_many())
def test_mistakes_are_found_in_any_order(source, seed):
    assert len(mistakes.cases(source)) >= 8
    executable = build_program(source, check=True)
    schedule = {"CUDA_CPU_SEED": seed} if seed else {}
    assert mistakes.missed(source, executable, **schedule) == {}
    assert mistakes.alarms(source, executable, **schedule) == {}


@pytest.mark.parametrize("name", sorted(path.stem for path in REFUSED.glob("*.cu")))
def test_what_is_not_offered_is_refused_at_compile_time(name):
    source = REFUSED / f"{name}.cu"
    words, (line,), _ = mistakes.expectation(source)
    with pytest.raises(BuildError) as error:
        build_program(source)
    assert words in error.value.log and f"{source.name}:{line}:" in error.value.log, error.value.log


def test_a_broken_program_that_is_right_is_not_diagnosed(tmp_path):
    source = tmp_path / "right.cu"
    source.write_text(
        "// expect: leak; line 2; mode: fast\nint main() { cudaDeviceSynchronize(); }\n"
    )
    assert mistakes.diagnosis(source) == (False, "")


@pytest.mark.nightly("kernels drawn anew; by day the same rules are programs of their own")
@pytest.mark.parametrize("part", range(10))
def test_random_kernels_give_what_their_statements_say(part, tmp_path, request):
    first = request.config.getoption("--seed", 0) * 1_000_000 + part * 300
    for start in range(first, first + 300, fuzz.TOGETHER):
        assert fuzz.differences(range(start, start + fuzz.TOGETHER), tmp_path) == {}


#: Of the texts of kernels 0 to 299: a number that was noted names the same kernel tomorrow
TEXTS = "ffe48e3cdf83a309af7be7549c5564ccacc6f277574a0462f56429f384744d25"


def test_a_random_kernels_number_stays_its_own():
    texts = "".join(fuzz.Kernel(number).text for number in range(300))
    assert hashlib.sha256(texts.encode()).hexdigest() == TEXTS


def test_what_a_random_kernel_must_give_is_worked_out_by_the_rules():
    numbers = np.array([5, 0xFFFFFFFF], fuzz.U)
    amounts = np.array([31, 4], fuzz.U)
    assert fuzz.shifted(numbers, amounts, left=True).tolist() == [1 << 31, 0xFFFFFFF0]
    assert fuzz.shifted(numbers.view(fuzz.I), amounts, left=False).tolist() == [0, -1]
    floats = np.array([np.nan, -1.5, 3e9, 1e20], fuzz.F)
    assert fuzz.saturated(floats, fuzz.I).tolist() == [0, -1, 2**31 - 1, 2**31 - 1]
    assert fuzz.saturated(floats, fuzz.U).tolist() == [0, 0, 3_000_000_000, 2**32 - 1]
    # (1 + e)^2 - (1 + 2 e) is e^2 rounded once, and 0 rounded twice
    e = np.float32(2**-23)
    one = np.array([1], fuzz.F)
    assert fuzz.fused(one + e, one + e, -(one + 2 * e)).tolist() == [2.0**-46]
    kernel = fuzz.Kernel(7)
    assert (kernel.text, kernel.expected()) == (fuzz.Kernel(7).text, fuzz.Kernel(7).expected())
    assert kernel.expected() != fuzz.Kernel(8).expected()


def test_random_kernels_are_built_by_whom_one_asks_for_and_not_after_the_end():
    asked = []

    def build(source):
        asked.append(source.read_text().count("__global__"))
        return "true"

    tried, wrong = fuzz.some(range(3), build, end=float("inf"))
    assert (tried, asked, list(wrong)) == (3, [3], ["k0", "k1", "k2"])
    assert fuzz.some(range(3), build, end=0) == (0, {})
    assert asked == [3]


def test_recording_needs_a_gpu(monkeypatch):
    from tests.conformance import record

    monkeypatch.setattr(record.shutil, "which", lambda name: None)
    monkeypatch.setattr(subprocess, "run", None)
    with pytest.raises(SystemExit, match="needs nvcc and an NVIDIA GPU"):
        record.gpu_facts()
