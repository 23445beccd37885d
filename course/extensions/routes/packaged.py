"""A package with PyTorch's stable interface: one library for every version from 2.10 on."""

import sys

from course.extensions import packaging

NAMESPACE = "polynomial_op"


def define() -> str:
    """Build the package where that has not been done yet, and import it from there."""
    folder = packaging.unpacked()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    import polynomial_op  # noqa: F401  registers the operators and their rules

    return NAMESPACE
