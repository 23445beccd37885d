"""PTX and SASS of a kernel, made on the spot where the tools are, recorded and labelled where they
are not.
"""

import pytest

from utils.tools import listing, nvcc

SOURCE = """
template <typename T> __global__ void twice(T *x) { x[threadIdx.x] *= 2; }
template __global__ void twice<float>(float *);
extern "C" __global__ void plain(float *x) { x[threadIdx.x] += 1.0f; }
"""
needs_nvcc = pytest.mark.skipif(not nvcc.find_nvcc(), reason="no nvcc here")
needs_cuobjdump = pytest.mark.skipif(not listing._cuobjdump(), reason="no cuobjdump here")


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(SOURCE)
    return path


@needs_nvcc
@pytest.mark.parametrize("kernel, instruction", [("plain", "add"), ("twice", "")])
def test_ptx_of_one_kernel(source, kernel, instruction):
    text = listing.ptx(source, kernel)
    assert text.count(".entry") == 1 and kernel in text
    assert "ld.global" in text and f"{instruction}" in text and "st.global" in text
    assert ".loc" not in text


@needs_nvcc
@needs_cuobjdump
def test_sass_of_one_kernel(source):
    text = listing.sass(source, "plain")
    assert "LDG" in text and "STG" in text and "EXIT" in text
    assert "nvcc" in text.splitlines()[0]


@needs_nvcc
def test_no_such_kernel_and_source_that_does_not_compile(source, tmp_path):
    with pytest.raises(LookupError, match="no kernel named nothing"):
        listing.ptx(source, "nothing")
    bad = tmp_path / "bad.cu"
    bad.write_text("__global__ void k() { x = 1; }")
    with pytest.raises(nvcc.NvccError, match="line 1"):
        listing.ptx(bad, "k")


def test_recorded_listing_is_labelled(source, tmp_path, monkeypatch):
    monkeypatch.setattr(listing, "RECORDED", tmp_path)
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: None)
    (tmp_path / "k.plain.ptx").write_text("// plain in k.cu, nvcc 13.0, sm_90\n.visible\n")
    assert repr(listing.ptx(source, "plain")).startswith(
        "// recorded: this machine has no compiler for GPU code"
    )
    with pytest.raises(nvcc.NvccError, match="none is recorded"):
        listing.sass(source, "plain")
