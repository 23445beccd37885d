"""The judge of two slots: it sees whether a kernel asks ahead, before it says that it is right."""

from pathlib import Path

import pytest

from course.kernels.matmul import ahead, tensor
from course.kernels.matmul.ladder import blocks, sizes
from tests.needs import without_gpu
from utils import cuda_c

pytestmark = without_gpu("the kernels are wrong, and some would never end on a GPU")

SHARED = (
    ("    Stage stage;\n    barrier full, unused;", "    Stage stage[2];\n    barrier full[2];"),
    (
        "barrier_init(&s.full, 1);",
        "barrier_init(&s.full[0], 1);\n        barrier_init(&s.full[1], 1);",
    ),
    ("multiply(d, s.stage,", "multiply(d, s.stage[step % 2],"),
    ("barrier_wait(&s.full, step % 2)", "barrier_wait(&s.full[step % 2], step / 2 % 2)"),
)
ASKS = "load(s.stage, &map_a, &map_b, &s.full, row, column, step * BK);"
FIRST = (
    "    float d[128];\n",
    """    float d[128];
    if (threadIdx.x == 0)
        load(s.stage[0], &map_a, &map_b, &s.full[0], row, column, 0);
""",
)
AHEAD = (
    f"        if (threadIdx.x == 0)\n            {ASKS}\n",
    """        int next = step + 1;
        if (threadIdx.x == 0 && next * BK < k)
            load(s.stage[next % 2], &map_a, &map_b, &s.full[next % 2], row, column, next * BK);
""",
)
IN_TURN = (
    ASKS,
    "load(s.stage[step % 2], &map_a, &map_b, &s.full[step % 2], row, column, step * BK);",
)
NO_LAST_STEP = (" && next * BK < k", "")
PARITY = ("step / 2 % 2", "step % 2")


def changed(folder: Path, *changes) -> Path:
    """The rung's file in `folder`, with these texts in place of others."""
    text = ahead.PATH.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "wgmma.cu"
    path.write_text(text)
    for header in tensor.KERNELS.glob("*.cuh"):
        (folder / header.name).write_text(header.read_text())
    return path


def two_slots(path: Path):
    """What compiles it and returns multiply(c, a, b), as the chapter does."""

    def make():
        kernel = cuda_c.load(path).matmul

        def multiply(c, a, b):
            m, n, k = sizes(a, b)
            grid = blocks(n, 256), blocks(m, 128)
            maps = tensor.map_of(a, 128), tensor.map_of(b, 64)
            kernel[grid, 256, 2 * (ahead.STAGE + 2 * 8)](c, *maps, m, n, k)

        return multiply

    return make


@pytest.mark.parametrize(
    "changes, early",
    [((), 0), ((*SHARED, IN_TURN), 0), ((*SHARED, FIRST, AHEAD), ahead.STEPS - 1)],
    ids=["unchanged", "two slots in turn", "one step ahead"],
)
def test_waits_that_found_the_next_step_asked_for(changes, early, tmp_path):
    path = changed(tmp_path, *changes)
    assert ahead.early_waits(path) == early
    assert ahead.early_waits(path) == early  # the count begins anew


def test_the_rung_as_it_was_is_not_said_to_be_right(capsys):
    ahead.tried_ahead(two_slots(ahead.PATH))
    assert capsys.readouterr().out.startswith("○ not yet")


def test_two_slots_are_right(tmp_path, capsys):
    path = changed(tmp_path, *SHARED, FIRST, AHEAD)
    ahead.tried_ahead(two_slots(path), path)
    said = capsys.readouterr().out
    assert said.startswith("✓ right") and "2 of the 2 steps" in said


@pytest.mark.parametrize(
    "slip, words",
    [
        (NO_LAST_STEP, "on its way"),
        (PARITY, "the copy of line 61 has not filled yet"),
    ],
    ids=["a step too many", "a wrong parity"],
)
def test_a_slip_is_named_and_not_said_to_be_right(slip, words, tmp_path, capsys):
    path = changed(tmp_path, *SHARED, FIRST, AHEAD, slip)
    ahead.tried_ahead(two_slots(path), path)
    said = capsys.readouterr().out
    assert words in said and "✓" not in said
