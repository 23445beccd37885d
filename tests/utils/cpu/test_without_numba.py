"""The CPU engine where there is no Numba, no greenlet and no thread, as in a web page."""

import json
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core import sigutils
from numba.np.numpy_support import as_dtype

from tests.conformance.numba import derive
from utils.cpu.numba_cuda import without_numba
from utils.files import ROOT

HIDDEN = ["numba", "llvmlite", "greenlet", "torch", "triton", "fcntl", "resource", "IPython"]
#: Runs the conformance bank where these modules cannot be found
RUN = f"""
import importlib.machinery, runpy, sys
finder = importlib.machinery.PathFinder
find = finder.find_spec
hidden = lambda name, *more: None if name.split(".")[0] in {HIDDEN} else find(name, *more)
finder.find_spec = staticmethod(hidden)
sys.argv = ["run", *sys.argv[1:]]
runpy.run_module("tests.conformance.numba.run", run_name="__main__")
"""


@pytest.mark.parametrize("name", sorted(set(without_numba.TYPES) - {"float16", "void", "none"}))
def test_a_type_is_numbas_of_its_name(name):
    ours, theirs = without_numba.TYPES[name], getattr(numba, name)
    assert without_numba.as_dtype(ours) == as_dtype(theirs)
    assert without_numba.from_dtype(as_dtype(theirs)) == ours
    assert ours.bitwidth == getattr(theirs, "bitwidth", 8 * as_dtype(theirs).itemsize)
    for axes in (np.s_[:], np.s_[::1], np.s_[:, :], np.s_[:, ::1], np.s_[::1, :]):
        assert (ours[axes].ndim, ours[axes].layout) == (theirs[axes].ndim, theirs[axes].layout)


@pytest.mark.parametrize("text", ["void(float32[:], int32)", "(int64, boolean)", "float64(uint8)"])
def test_a_signature_is_taken_apart_as_numba_does(text):
    ours = without_numba.normalize_signature(text)
    theirs = sigutils.normalize_signature(text)
    assert [as_dtype(getattr(one, "dtype", one)) for one in theirs[0]] == [
        without_numba.as_dtype(getattr(one, "element", one)) for one in ours[0]
    ]
    assert str(ours[1]) == str(theirs[1])


@pytest.mark.nightly("by day the bank is run beside Numba, by generators too")
def test_the_conformance_bank_needs_neither_numba_nor_greenlets():
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(derive.FOLDER), "1"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    printed = json.loads(done.stdout)
    del printed["torch_tensors"]
    expected = {name: (derive.FOLDER / f"{name}.out").read_text() for name in printed}
    assert len(printed) > 50
    assert {name: runs["1"]["printed"] for name, runs in printed.items()} == expected
