"""What the words of a rejection are chosen by."""

import pytest

from course.checking.rejected import barriers_in_branches

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
