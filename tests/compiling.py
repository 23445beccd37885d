"""CUDA C files that nvcc must compile, and what is in the machine code."""

import pytest

from tests.processes import completed
from utils.tools import machine_code
from utils.tools.nvcc import find_nvcc

needs_nvcc = pytest.mark.skipif(not find_nvcc(), reason="there is no nvcc here")


def instances(file, templates, folder):
    """A file in the folder that includes this one and instantiates these kernels of it."""
    source = folder / "source.cu"
    lines = [f'#include "{file}"']
    lines += [f"template __global__ void {template};" for template in templates]
    source.write_text("\n".join(lines) + "\n")
    return source


def compiled(source, folder, arch, *flags):
    """(what nvcc says, the cubin's path) of a CUDA C file that it must compile."""
    cubin = folder / "out.cubin"
    options = [f"-arch={arch}", "-std=c++17", "-cubin", *flags]
    done = completed([find_nvcc(), *options, "-o", str(cubin), str(source)])
    report = done.stdout + done.stderr
    assert done.returncode == 0, report
    return report, cubin


def unspilled(source, folder, arch, *flags):
    """The cubin of a file that is compiled without a warning and without spilled registers."""
    report, cubin = compiled(source, folder, arch, "-Xptxas=-v", *flags)
    assert "0 bytes spill stores" in report and "warning" not in report, report
    return cubin


def sass(cubin):
    """A cubin's machine code, as text; the test is left out where nothing can read it."""
    cuobjdump = machine_code.find_tool("cuobjdump")
    if not cuobjdump:
        pytest.skip("compiled; no cuobjdump here to read the machine code")
    return completed([cuobjdump, "--dump-sass", str(cubin)]).stdout
