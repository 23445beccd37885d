"""Which tests run when. A plugin of pytest, for the Makefile's verbs:

    make check      --tier=check      what is fast, before a push
    make test       --tier=test       every statement of the course once
    make nightly    --tier=nightly    everything there is, on inputs drawn anew

A test marked `nightly("why")` says what another one says, too, at another order of threads, size or
place, or asks a browser once more: `make test` leaves it out. Of a test with many parameters, each
a program or an answer of its own, it runs one in three where it is marked `one_in(3, "why")`, and
as many as SHARES has it for a folder: always the same ones, the first among them. `make nightly`
leaves out nothing. Without this plugin pytest runs what it is given, whole.

What stands beside a clock, an estimate, takes longer than many a cell: by day notebooks leave it
out, but for those in ESTIMATED. So they do with what is a starter's check (it shows that it is not
solved) or a question and no more, but for those in WHOLE, and with a few dear cells for which a
test stands, in AT_NIGHT.

--shard=2/4 takes the second of four parts, --seed=N repeats a night's inputs.
"""

import os
import random
import re
from collections import Counter

import pytest
from xdist.scheduler import LoadFileScheduling

TIERS = "check", "test", "nightly"
#: `make check` runs these, less what is marked nightly,
FAST = (
    "tests/utils/check/",
    "tests/utils/plots/",
    "tests/utils/tools/",
    "tests/utils/test_hardware.py",
    "tests/utils/test_results.py",
    "tests/course/checking/",
    "tests/course/test_progress.py",
    "tests/chapters/test_notebooks.py",
    "tests/chapters/test_references.py",
    "tests/test_architecture.py",
    "tests/test_layout.py",
    "chapters/05_first_kernels.ipynb",
)
#: without these: films are drawn, memory is filled, Triton's interpreter takes its time;
DEAR = (
    "tests/course/checking/test_films",
    "tests/course/checking/test_memory_limits.py",
    "tests/course/checking/test_triton_kernels.py",
)
#: and of these what is marked `quick`.
SAMPLED = (
    "tests/course/exercises/test_exercises.py",
    "tests/utils/cpu/test_conformance_cuda_c.py",
)
#: Marks that say why, and their form
REASONED = {"nightly": 'nightly("why")', "one_in": 'one_in(3, "why")'}
#: Files of hundreds of independent tests, whose parameters begin with a chapter's name: a worker
#: takes those of one chapter, not all.
LARGE = (
    "tests/course/exercises/test_exercises.py",
    "tests/course/exercises/test_more_answers.py",
)
#: Of each test's parameters by day one in so many is taken: of kernels that notebooks run, too, of
#: engines, which every notebook and exercise runs on, of cheats that are caught by like means
SHARES = {
    "tests/course/kernels/": 3,
    "tests/course/judge/": 3,
    "tests/utils/cpu/": 3,
    "tests/utils/tracer/": 3,
    "tests/course/extensions/": 2,
    "tests/course/libraries/": 2,
}
#: As in utils/timing.py, which would load NumPy before a worker's threads are counted
NO_ESTIMATES = "CUDA_COURSE_NO_ESTIMATES"
#: As in utils/cpu/cuda_c/compiler.py, and the level by day
OPTIMIZE, OPTIMIZE_BY_DAY = "CUDA_COURSE_OPTIMIZE", "-Og"
#: Notebooks whose cells say estimates by day, too
ESTIMATED = ("24_estimates.ipynb",)
#: Notebooks that hand in their starters and ask their questions by day, too; of all others a wrong
#: answer is handed in, and tests/chapters/test_notebooks.py asks what can be asked
WHOLE = ("05_first_kernels.ipynb",)
#: A cell that does nothing but that
ASKS = re.compile(r"exercises\.(check|quiz|predict)\([^()]*\)\s*")
#: Cells that run at night alone, by their ids, and the tests that say by day what they show
AT_NIGHT = {
    "02_your_gpu.ipynb": {  # another Python is started, which imports all
        "break": "tests/chapters/test_without_gpu.py",
    },
    "08_profiling.ipynb": {
        "loop-code": "tests/utils/tools/test_machine_code.py",
        "mlp-flame": "tests/course/pictures/test_profiling_pictures.py",
    },
    "09_libraries.ipynb": dict.fromkeys(
        ("break-gemm", "break-cub", "late-run"), "tests/course/libraries/test_programs.py"
    ),
    "10_reductions.ipynb": {  # sums in eight orders each
        "bits-count": "tests/course/kernels/reductions/test_climbing.py",
    }
    | dict.fromkeys(
        ("ring-compare", "whole-climb", "reduce-then-scan-climb"),
        "tests/course/kernels/reductions/test_scans.py",
    ),
    "11_matmul.ipynb": dict.fromkeys(
        ("cp-async-climb", "vector-climb", "numba-code", "unsigned-climb"),
        "tests/course/kernels/matmul/test_float32_kernels.py",
    ),
    "12_tensor_cores.ipynb": dict.fromkeys(  # kernels as they stand are tried with all checks
        ("break-barrier", "break-tiles", "break-mma", "break-wait"),
        "tests/course/kernels/matmul/test_tensor_kernels.py",
    ),
    "15_triton.ipynb": {"layout": "tests/utils/tools/test_machine_code.py"},
    "16_fusion.ipynb": {
        "break-adamw": "tests/course/kernels/fusion/test_fused_kernels.py",
        "rows-race": "tests/course/kernels/row_kernels/test_row_kernels.py",
    },
    "17_low_precision.ipynb": {
        "break-fp8": "tests/course/kernels/low_precision/test_few_bits.py",
    },
    "18_pytorch_extensions.ipynb": dict.fromkeys(  # a package is installed, and used
        ("package-install", "colleague", "colleague-yours", "table-here"),
        "tests/course/extensions/test_extensions.py",
    ),
    "19_mnist_cnn.ipynb": dict.fromkeys(  # what came of a whole training; by day of one step
        ("torch-train-run", "run-check", "curve", "rounding-run", "speed", "break-stream")
        + ("misread",),
        "tests/course/kernels/mnist_cnn/test_naive_trainer.py",
    ),
    "20_beating_pytorch.ipynb": {
        "break-lanes": "tests/course/kernels/mnist_cnn/test_steps.py",
        "break-mma": "tests/course/kernels/mnist_cnn/test_steps.py",
        "pick-tried": "tests/course/kernels/mnist_cnn/test_steps.py",
        "right-table": "tests/course/kernels/mnist_cnn/test_fast.py",
        "right-shown": "tests/course/kernels/mnist_cnn/test_fast.py",
        "learn": "tests/course/kernels/mnist_cnn/test_sockets.py",  # ten steps; by day two
    },
    "21_many_gpus.ipynb": dict.fromkeys(
        ("break-order", "break-flags"), "tests/course/kernels/many_gpus/test_trying.py"
    )
    | dict.fromkeys(  # all ways of cutting a training, by two ranks
        ("buckets-code", "zero-code", "cuts-run", "zero-bytes", "pipeline"),
        "tests/course/kernels/many_gpus/test_cuts.py",
    ),
    "22_attention.ipynb": {
        "back-rungs": "tests/course/kernels/attention/test_backward.py",
        "ring-run": "tests/course/kernels/attention/test_ring.py",
    }
    | dict.fromkeys(  # the last rung is tried, which has all of them
        ("break-shrink", "break-turn", "break-overlap"),
        "tests/course/kernels/attention/test_attention.py",
    ),
    "23_language_model.ipynb": dict.fromkeys(  # kernels as they stand are tried once
        ("break-cache", "gemv-try", "decoded"),
        "tests/course/kernels/language_model/test_trying.py",
    ),
    "25_not_written.ipynb": dict.fromkeys(  # envelopes that the judge opens
        (*(f"opened-{number}" for number in range(1, 13) if number != 2), "pattern-one")
        + ("break-kept", "loop"),
        "tests/course/judge/test_bank.py",
    ),
}
#: and what others do less of by day
LESS = {
    "11_matmul.ipynb": {"cpu-run": ("side = 512", "side = 256")},
    "13_convolution.ipynb": {"undo": ("photo, 200", "photo, 20")},
    "19_mnist_cnn.ipynb": {"run": ("lr={lr}", "lr={lr} steps=8")},
    "23_language_model.ipynb": {
        "train": ("cpu=100", "cpu=40"),
        "first-loss": ("text.chapters()", "text.chapters()[:100_000]"),
        "break-peek": ("lessons, 60", "lessons, 20"),
    },
}


def part(text: str) -> tuple[int, int]:
    """(index, count) of "2/4", the second of four."""
    number, _, count = text.partition("/")
    if not 1 <= int(number) <= int(count):
        raise ValueError(text)
    return int(number) - 1, int(count)


def pytest_addoption(parser):
    """Called by pytest before it reads its options."""
    parser.addoption("--tier", choices=TIERS, default="nightly", help="which tests to run")
    parser.addoption("--shard", type=part, default=(0, 1), help="K/N: the K-th of N parts")
    parser.addoption("--seed", type=int, help="of the inputs, as a night printed it")


def pytest_configure(config):
    """Called by pytest before it looks for tests, and before it starts workers."""
    if config.option.seed is None:
        anew = config.option.tier == "nightly"
        config.option.seed = random.SystemRandom().randrange(1, 1 << 31) if anew else 0
    if config.option.tier != "nightly":  # half of a build's time; notebooks inherit it, too
        os.environ.setdefault(OPTIMIZE, OPTIMIZE_BY_DAY)


def pytest_report_header(config):
    """The line above the tests, by which a night is repeated."""
    return f"tier: {config.option.tier}, --seed={config.option.seed}"


def pytest_ignore_collect(collection_path, config):
    """Called by pytest for each file and folder: `make check` imports no more than it runs."""
    if config.option.tier != "check" or collection_path.is_dir():
        return None
    place = collection_path.relative_to(config.rootpath).as_posix()
    return None if is_fast(place) or place.startswith(SAMPLED) else True


def is_fast(place: str) -> bool:
    """Whether `make check` runs a file, or the test of such a name, whole."""
    return place.startswith(FAST) and not place.startswith(DEAR)


def belongs(item, tier: str) -> bool:
    """Whether a tier runs a test. pytest.UsageError where a mark says no reason."""
    for name, form in REASONED.items():
        mark = item.get_closest_marker(name)
        if mark and not (mark.args and isinstance(mark.args[-1], str)):
            raise pytest.UsageError(f"{item.nodeid}: {form} needs a reason")
    if item.get_closest_marker("nightly"):
        return tier == "nightly"
    if waits(item):
        return tier == "nightly"
    if tier == "check" and item.nodeid.startswith(SAMPLED):
        return item.get_closest_marker("quick") is not None
    return tier != "check" or is_fast(item.nodeid)


def of_the_day(items) -> list:
    """What runs by day of tests that belong there: of many parameters the first, and one in so many
    behind it.
    """
    numbers, chosen = Counter(), []
    for item in items:
        test, is_one_of_many, _ = item.nodeid.partition("[")
        mark = item.get_closest_marker("one_in")
        shares = (count for place, count in SHARES.items() if test.startswith(place))
        count = mark.args[0] if mark else next(shares, 1)
        if not is_one_of_many or numbers[test] % count == 0:
            chosen.append(item)
        numbers[test] += 1
    return chosen


def waits(item) -> bool:
    """Whether it is a notebook's cell that runs at night alone."""
    cell = getattr(item, "cell", None)  # nbval's
    if cell is None:
        return False
    asks = ASKS.fullmatch(cell.source) and item.path.name not in WHOLE
    return bool(asks) or cell.id in AT_NIGHT.get(item.path.name, ())


def shorten(item) -> None:
    """Let a notebook's cell do as much as LESS has it."""
    cell = getattr(item, "cell", None)
    if cell is not None and cell.id in LESS.get(item.path.name, ()):
        cell.source = cell.source.replace(*LESS[item.path.name][cell.id])


def unit(nodeid: str) -> str:
    """What one worker runs in one go: a file, or a chapter's tests of a large one."""
    file, _, test = nodeid.partition("::")
    chapter = test.partition("[")[2].partition(".")[0]
    return f"{file} {chapter}" if file in LARGE else file


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Called by pytest once it has found all tests: leaves those of the tier and of the part."""
    index, count = config.option.shard
    in_tier = [item for item in items if belongs(item, config.option.tier)]
    if config.option.tier == "test":  # `make check` is sampled by another mark
        in_tier = of_the_day(in_tier)
    units = list(dict.fromkeys(unit(item.nodeid) for item in in_tier))
    mine = set(units[index::count])
    chosen = {item for item in in_tier if unit(item.nodeid) in mine}
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]
    if config.option.tier != "nightly":
        for item in items:
            shorten(item)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Called by pytest before each test, and so before a notebook's kernel is started."""
    is_notebook = item.path.suffix == ".ipynb"
    if is_notebook and item.config.option.tier != "nightly" and item.path.name not in ESTIMATED:
        os.environ[NO_ESTIMATES] = "1"
    else:
        os.environ.pop(NO_ESTIMATES, None)


class ByUnit(LoadFileScheduling):
    """Gives each worker a unit at a time."""

    def _split_scope(self, nodeid):
        return unit(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Called by xdist, whose --dist loadfile would give a worker whole files."""
    return ByUnit(config, log)
