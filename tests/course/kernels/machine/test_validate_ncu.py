"""Holding the tracer's counts against Nsight Compute: what is compared, and nothing recorded
unmeasured.
"""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split

import json

import pytest

from course.kernels.machine import validate_ncu
from course.kernels.machine.validate_ncu import (
    COUNTERS,
    CUDA_C,
    FOLDER,
    NUMBA,
    NotMeasured,
    compare,
    differences,
    main,
    parse,
    traced,
)
from tests.needs import cpp_compiler, without_gpu
from utils import has_gpu

CASES = {
    name: (kernel, grid, block, args) for name, kernel, grid, block, args in validate_ncu.cases()
}
HEAD = '"ID","Process ID","Kernel Name","Grid Size"'


@pytest.mark.parametrize(
    "name, key, count",
    [  # 256 threads are 8 warps
        ("copy, stride 1, offset 0", "global read sectors", 8 * 4),
        ("copy, stride 1, offset 1", "global read sectors", 8 * 5),
        ("copy, stride 32, offset 0", "global read sectors", 8 * 32),
        ("copy, stride 0, offset 0", "global read sectors", 8),
        ("copy, stride 2, offset 0", "global write requests", 8),
        ("transpose_naive", "global write sectors", 128 * 32),
        ("transpose_tiled", "shared read conflicts", 128 * 31),
        ("transpose_padded", "shared read conflicts", 0),
        ("banks, 4 bytes, stride 32", "shared read passes", 32),
        ("banks, 8 bytes, stride 16", "shared write conflicts", 32 - 2),
        ("array of structures", "global read requests", 8 * 4),
        ("copy, complex128", "global read sectors", 8 * 2 * 16),
    ],
)
def test_what_the_tracer_expects_of_the_hardware(name, key, count):
    assert traced(*CASES[name])[key] == count


@pytest.fixture(scope="module")
def in_cuda_c():
    """Name -> counts of the CUDA C cases."""
    cpp_compiler()
    return {name: traced(*launch) for name, *launch in validate_ncu.cuda_c_cases()}


@pytest.mark.nightly("by day CUDA C is counted in tests/utils/tracer, of a kernel each")
@without_gpu("CUDA C is traced on the CPU runtime only")
@pytest.mark.parametrize(
    "name, key, count",
    [
        ("copy, stride 1, offset 3", "global read sectors", 8 * 5),
        ("scatter, stride 5", "global write sectors", 8 * 20),
        ("copy_wide", "global read sectors", 8 * 16),
        ("copy_bytes", "global write sectors", 8),
        ("add_guarded", "global read sectors", 2 * 32),  # 250 floats: 32 sectors
        ("every_other_lane", "global read requests", 8),
        ("structures", "global read sectors", 3 * 8 * 12),
        ("in_strides", "global read requests", 32),  # 1,000 elements, 32 a request
        ("transpose_tiled", "shared read conflicts", 128 * 31),
        ("banks, stride 31", "shared read conflicts", 0),
        ("banks_wide", "shared read passes", 2 * 4),
        ("broadcast", "shared read passes", 2),
        # of each of two blocks: 4 warps at first, then 2, then one at a time
        ("sum_tree", "shared read passes", 2 * (2 * (2 + 6) + 1)),
        ("sum_tree", "shared write passes", 2 * (4 + 2 + 6)),
        ("product", "shared read passes", 32 * 2 * 2 * 16),  # warps, tiles, arrays, steps
        ("product", "global write requests", 32),
    ],
)
def test_what_the_tracer_expects_of_cuda_c(in_cuda_c, name, key, count):
    assert in_cuda_c[name][key] == count


def test_every_kernel_of_the_file_is_launched():
    launched = {kernel.signature.name for _, kernel, *_ in validate_ncu.cuda_c_cases()}
    assert len(launched) == 20
    assert launched == set(validate_ncu.cuda_c.kernels_in(validate_ncu.IN_CUDA_C.read_text()))


@pytest.mark.parametrize("language", [NUMBA, CUDA_C])
def test_no_recorded_count_differs_from_nsight_computes(language):
    recorded = json.loads((FOLDER / "tracer-nvidia-h200.json").read_text(encoding="utf-8"))
    entries = recorded[language]
    assert len(entries) >= 20 and differences(entries) == []
    assert all(any(both["ncu"] for both in entry["counts"].values()) for entry in entries)


@pytest.mark.nightly("by day CUDA C is counted in tests/utils/tracer, of a kernel each")
@without_gpu("CUDA C is traced on the CPU runtime only")
def test_the_tracer_still_counts_cuda_c_as_recorded(in_cuda_c):
    recorded = json.loads((FOLDER / "tracer-nvidia-h200.json").read_text(encoding="utf-8"))
    was = {
        entry["kernel"]: {key: both["tracer"] for key, both in entry["counts"].items()}
        for entry in recorded[CUDA_C]
    }
    assert in_cuda_c == was


def wide(rows):
    counters = list(COUNTERS.values())
    lines = ["==PROF== Connected", HEAD + "".join(f',"{counter}"' for counter in counters)]
    lines.append('"","","",""' + ',"sector"' * len(counters))
    for number, row in enumerate(rows):
        lines.append(
            f'"{number}","1","k","(1, 1, 1)"' + "".join(f',"{row[name]:,}"' for name in COUNTERS)
        )
    return "\n".join([*lines, "==PROF== Disconnected"])


def long(rows):
    lines = [HEAD + ',"Section Name","Metric Name","Metric Unit","Metric Value"']
    for number, row in enumerate(rows):
        for name, counter in COUNTERS.items():
            lines.append(
                f'"{number}","1","k","(1, 1, 1)","Command line","{counter}","","{row[name]:,}"'
            )
    return "\n".join(lines)


@pytest.mark.parametrize("form", [wide, long])
def test_both_forms_of_ncus_tables_are_read(form):
    rows = [{name: 1000 * k + i for i, name in enumerate(COUNTERS)} for k in range(12)]
    assert parse(form(rows)) == rows


def test_a_table_without_a_counter_is_refused():
    text = wide([dict.fromkeys(COUNTERS, 1)]).replace(COUNTERS["global read sectors"], "other")
    with pytest.raises(NotMeasured, match="l1tex__t_sectors_pipe_lsu_mem_global_op_ld"):
        parse(text)
    with pytest.raises(NotMeasured, match="no table"):
        parse("==ERROR== something")


def test_differing_counts_are_named():
    ours = [{"kernel": "copy", "counts": dict.fromkeys(COUNTERS, 4)}]
    assert differences(compare(ours, [dict.fromkeys(COUNTERS, 4)])) == []
    theirs = dict.fromkeys(COUNTERS, 4) | {"global read sectors": 5}
    assert differences(compare(ours, [theirs])) == ["copy: global read sectors: tracer 4, ncu 5"]
    with pytest.raises(NotMeasured, match="2 launches, not 1"):
        compare(ours, [theirs, theirs])


def test_without_a_gpu_nothing_is_recorded(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(validate_ncu, "has_gpu", lambda: False)
    monkeypatch.setattr(validate_ncu, "FOLDER", tmp_path)
    assert main([]) == 2 and list(tmp_path.iterdir()) == []
    assert "nothing recorded" in capsys.readouterr().err


@pytest.mark.skipif(
    not has_gpu() or validate_ncu.find_ncu() is None, reason="needs a GPU and Nsight Compute"
)
def test_the_counts_are_nsight_computes(monkeypatch, tmp_path):
    monkeypatch.setattr(validate_ncu, "FOLDER", tmp_path)
    assert main([]) == 0
