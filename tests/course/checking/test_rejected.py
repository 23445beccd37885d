"""What the words of a rejection are chosen by."""

import pytest

from course.checking.rejected import (
    BARRIER_CURES,
    IN_A_BRANCH,
    IN_ONE_LINE,
    Rejected,
    barriers_in_branches,
    reject_mistake,
)

LOOP = "for (int i = 0; i < n; ++i) { __syncthreads(); }"


@pytest.mark.parametrize(
    "source, all_inside",
    [
        ("if (warp == 0) { keys[x] = 1; __syncthreads(); }", True),
        ("if (warp == 0) __syncthreads();", True),
        ("if (a) { x = 1; } else { __syncthreads(); }", True),
        (f"if (a) {{ {LOOP} }}", True),
        (LOOP, False),
        ("if (a) { x = 1; } __syncthreads();", False),
        ("if (a) { __syncthreads(); } __syncthreads();", False),
        ("x = 1;  // if so\n__syncthreads();", False),
        ("// if (a) { __syncthreads(); }", False),
        ("", False),
    ],
)
def test_barriers_are_found_inside_of_branches(source, all_inside):
    assert barriers_in_branches(source) is all_inside


def race(memory, first, other):
    """What the CPU runtime says of one that reads in a line what another writes in a line."""
    return (
        f"answer.cu:{first}: error: two threads use the same {memory} memory without a barrier"
        " between: this one reads it, and thread (0,0,0) of the same block writes it in line"
        f" {other}.{BARRIER_CURES} [data-race]\n  in kernel `update`"
    )


@pytest.mark.parametrize(
    "memory, lines, source, cure",
    [
        ("global", (8, 8), "", IN_ONE_LINE),
        ("global", (8, 9), "", BARRIER_CURES),
        ("global", (8, 18), "", BARRIER_CURES),
        ("shared", (8, 8), "", BARRIER_CURES),
        ("global", (8, 8), "if (a) __syncthreads();", IN_A_BRANCH),
    ],
)
def test_a_barrier_is_no_cure_within_a_line(memory, lines, source, cure):
    with pytest.raises(Rejected) as refused:
        reject_mistake(("", race(memory, *lines)), source=source)
    said = str(refused.value) + repr(vars(refused.value))
    assert [words in said for words in (BARRIER_CURES, IN_A_BRANCH, IN_ONE_LINE)] == [
        words == cure for words in (BARRIER_CURES, IN_A_BRANCH, IN_ONE_LINE)
    ]
