"""CUDA C and C++ answers that take memory without end have an outcome, and little of the memory."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import resource
import sys

import pytest

from course import exercises
from course.checking import cuda_c_child, loaded
from course.checking.checker import check_answer
from course.exercises import c_for_cuda, first_kernels
from tests.needs import cpp_compiler
from utils import has_gpu

ROTATE = first_kernels.ROTATE_CU
IN_A_KERNEL = "    for (;;)\n        *(volatile char*)malloc(1 << 20) = 1;\n"
BEFORE_IT = """#include <cstdlib>
__device__ volatile char* hoarded = (volatile char*)malloc(100ull << 30);
__device__ char first = hoarded[0] = 1;
"""
IN_CPP = """#include <cstdlib>
#include <cstring>
int allocate(float** out, int n, float value) {
    for (;;)
        memset(std::malloc(1 << 26), 1, 1 << 26);
}
"""


@pytest.fixture(scope="module", autouse=True)
def limits():
    cpp_compiler()
    if has_gpu() or sys.platform != "linux":
        pytest.skip("memory is limited on Linux without a GPU, whose driver maps memory, too")


BY_THE_SAME_LIMIT = pytest.mark.nightly("by day in CUDA C, by the same limit of a process")


@pytest.mark.parametrize(
    "id, name, source",
    [
        (
            "first_kernels.rotate",
            "rotate.cu",
            ROTATE.replace("    int x =", IN_A_KERNEL + "    int x =", 1),
        ),
        ("first_kernels.rotate", "rotate.cu", BEFORE_IT + ROTATE),
        pytest.param("c_for_cuda.allocate", "allocate.cpp", IN_CPP, marks=BY_THE_SAME_LIMIT),
    ],
    ids=["in the kernel", "before the launch", "in C++"],
)
def test_memory_without_end_is_an_outcome(id, name, source, tmp_path):
    assert source not in (ROTATE, c_for_cuda.ALLOCATE)
    path = tmp_path / name
    path.write_text(source)
    outcome = check_answer(exercises.EXERCISES[id], path)
    assert outcome.status == "broken", repr(outcome)
    assert outcome.reason in ("crashed", "timeout"), repr(outcome)
    loaded.forget()  # its copies are children of this process only when it has ended
    most = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert most < cuda_c_child.MOST_MEMORY + (1 << 30)
