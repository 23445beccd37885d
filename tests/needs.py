"""What a test needs of the machine, and is left out without."""

import pytest

from utils import has_gpu
from utils.cpu.cuda_c.build import BuildError, compiler


def without_gpu(reason):
    """A mark: the test is left out, for this reason, where there is a GPU."""
    return pytest.mark.skipif(has_gpu(), reason=reason)


def cpp_compiler():
    """The C++ compiler's command; the test or the file is left out where there is none."""
    try:
        return compiler()
    except BuildError as error:
        pytest.skip(str(error).splitlines()[0], allow_module_level=True)
