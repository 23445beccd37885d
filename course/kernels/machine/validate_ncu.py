"""Hold the tracer's counts against Nsight Compute's: python -m course.kernels.machine.validate_ncu

Runs a handful of kernels once under ncu, Numba's here and CUDA C's of validate_ncu.cu, traces the
same launches on the CPU engines, prints both counts side by side and writes them to
assets/recorded/tracer-<gpu>.json. Exits with 1 if a count differs, 2 if nothing could be measured
(no GPU, no ncu, no permission to read its counters).
"""

import csv
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
from numba import cuda, float32, float64

from utils import cuda_c, engine, results
from utils.engine import has_gpu
from utils.files import ASSETS
from utils.tools import process
from utils.tracer import trace

FOLDER = ASSETS / "recorded"
IN_CUDA_C = Path(__file__).with_suffix(".cu")
NUMBA, CUDA_C = "kernels", "cuda_c_kernels"  # where the recorded file has them
LAUNCH, TRACE = "--launch", "--trace"
TIMEOUT = 300

# What the tracer calls it -> ncu's counter. A request is one instruction of one warp.
COUNTERS = {
    "global read requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global read sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global write requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "global write sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared read passes": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared read conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared write passes": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared write conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
}


class NotMeasured(RuntimeError):
    """ncu gave no counts; the text says why and what to do."""


# ---- the kernels
# Strides and offsets are arguments, so that the compiler cannot merge or drop an access.


@cuda.jit
def strided_copy(out, a, stride, offset):
    i = cuda.grid(1)
    out[i] = a[i * stride + offset]


@cuda.jit
def transpose_naive(out, a):
    x, y = cuda.grid(2)
    out[x, y] = a[y, x]


@cuda.jit
def transpose_tiled(out, a):
    tile = cuda.shared.array((32, 32), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    out[cuda.blockIdx.x * 32 + ty, cuda.blockIdx.y * 32 + tx] = tile[tx, ty]


@cuda.jit
def transpose_padded(out, a):
    tile = cuda.shared.array((32, 33), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    out[cuda.blockIdx.x * 32 + ty, cuda.blockIdx.y * 32 + tx] = tile[tx, ty]


@cuda.jit
def banks_4_bytes(out, stride):
    sh = cuda.shared.array(1024, float32)
    t = cuda.threadIdx.x
    sh[t * stride] = t
    cuda.syncthreads()
    out[t] = sh[(31 - t) * stride]


@cuda.jit
def banks_8_bytes(out, stride):
    sh = cuda.shared.array(1024, float64)
    t = cuda.threadIdx.x
    sh[t * stride] = t
    cuda.syncthreads()
    out[t] = sh[(31 - t) * stride]


@cuda.jit
def structures(out, p):
    i = cuda.grid(1)
    out[i] = p[i, 0] + p[i, 1] + p[i, 2] + p[i, 3]


@cuda.jit
def copy_16_bytes(out, a):
    i = cuda.grid(1)
    out[i] = a[i]


def cases():
    """(name, kernel, grid, block, host arguments) of every launch of a Numba kernel."""
    ones = np.ones
    for stride, offset in ((1, 0), (1, 1), (2, 0), (32, 0), (0, 0)):
        a = ones(256 * max(stride, 1) + offset, np.float32)
        name = f"copy, stride {stride}, offset {offset}"
        yield name, strided_copy, 4, 64, (ones(256, np.float32), a, stride, offset)
    yield "copy, float64, stride 2", strided_copy, 4, 64, (ones(256), ones(512), 2, 0)
    square = ones((64, 64), np.float32)
    for kernel in (transpose_naive, transpose_tiled, transpose_padded):
        yield kernel.__name__, kernel, (2, 2), (32, 32), (square, square)
    for stride in (1, 2, 3, 8, 32):
        arguments = ones(32, np.float32), stride
        yield f"banks, 4 bytes, stride {stride}", banks_4_bytes, 1, 32, arguments
    for stride in (1, 2, 3, 16):
        yield f"banks, 8 bytes, stride {stride}", banks_8_bytes, 1, 32, (ones(32), stride)
    fields = ones((256, 4), np.float32)
    yield "array of structures", structures, 4, 64, (ones(256, np.float32), fields)
    numbers = ones(256, np.complex128)
    yield "copy, complex128", copy_16_bytes, 4, 64, (numbers, numbers)


def cuda_c_cases():
    """The same of the CUDA C kernels, each launched at least once."""
    k = cuda_c.load(IN_CUDA_C)
    whole = np.int32

    def floats(count):
        return np.ones(count, np.float32)

    for stride, offset in ((1, 0), (1, 3), (2, 0), (9, 0), (32, 0)):
        arguments = floats(256), floats(256 * stride + offset), whole(stride), whole(offset)
        yield f"copy, stride {stride}, offset {offset}", k.copy, 4, 64, arguments
    for stride in (1, 5):
        arguments = floats(256 * stride), floats(256), whole(stride)
        yield f"scatter, stride {stride}", k.scatter, 4, 64, arguments
    yield "copy_wide", k.copy_wide, 4, 64, (floats(1024), floats(1024))
    yield "copy_double", k.copy_double, 4, 64, (np.ones(256), np.ones(256))
    yield "copy_bytes", k.copy_bytes, 4, 64, (np.ones(256, np.uint8), np.ones(256, np.uint8))
    three = floats(250), floats(250), floats(250)
    yield "add_guarded", k.add_guarded, 4, 64, (*three, whole(250))
    places = np.random.default_rng(0).integers(0, 4096, 256).astype(np.int32)
    yield "gather", k.gather, 4, 64, (floats(256), floats(4096), places)
    yield "every_other_lane", k.every_other_lane, 4, 64, (floats(256), floats(256))
    yield "stencil", k.stencil, 4, 64, (floats(256), floats(258))
    yield "structures", k.structures, 4, 64, (floats(256), floats(256 * 3), whole(3))
    yield "in_strides", k.in_strides, 2, 64, (floats(1000), floats(1000), whole(1000))
    for kernel in (k.transpose_naive, k.transpose_tiled, k.transpose_padded):
        arguments = floats(4096), floats(4096), whole(64)
        yield kernel.signature.name, kernel, (2, 2), (32, 32), arguments
    for stride in (1, 2, 8, 31, 32):
        yield f"banks, stride {stride}", k.banks, 1, 32, (floats(32), whole(stride))
    for stride in (1, 2, 16):
        yield f"banks_double, stride {stride}", k.banks_double, 1, 32, (np.ones(32), whole(stride))
    yield "banks_wide", k.banks_wide, 1, 64, (floats(256), floats(256))
    yield "broadcast", k.broadcast, 1, 64, (floats(64), floats(64), whole(7))
    yield "sum_tree", k.sum_tree, 2, 128, (floats(2), floats(256))
    square = floats(32 * 32)
    yield "product", k.product, (2, 2), (16, 16), (square, square, square, whole(32))


def all_cases():
    """(NUMBA or CUDA_C, a case) of both, in the order in which they are launched."""
    yield from ((NUMBA, case) for case in cases())
    yield from ((CUDA_C, case) for case in cuda_c_cases())


# ---- counting


def traced(kernel, grid, block, args):
    """The tracer's counts of one launch, by the names in COUNTERS."""
    t = trace(kernel, grid, block, *args)
    counted = dict.fromkeys(COUNTERS, 0)
    for row in t.coalescing:
        counted[f"global {row.operation} requests"] += row.requests
        counted[f"global {row.operation} sectors"] += row.sectors
    for row in t.banks:
        counted[f"shared {row.operation} passes"] += row.wavefronts
        counted[f"shared {row.operation} conflicts"] += row.conflicts
    return counted


def trace_all():
    """The tracer's counts of every case, as JSON on the last line: a list for each language."""
    counted = {NUMBA: [], CUDA_C: []}
    for language, (name, *launch) in all_cases():
        counted[language].append({"kernel": name, "counts": traced(*launch)})
    print(json.dumps(counted))


def traced_apart():
    """What `trace_all` counts, in a process of its own: CUDA C is traced on CPU engines only."""
    done = process.run(
        [sys.executable, "-m", __spec__.name, TRACE],
        timeout=TIMEOUT,
        env={**os.environ, engine.FORCE_CPU: "1"},
    )
    if done.returncode:
        raise NotMeasured(
            f"the tracer ended with exit code {done.returncode}:\n{done.output[-2000:]}"
        )
    return json.loads(done.output.strip().splitlines()[-1])


def launch_all():
    """Launch every case once on the GPU: what ncu watches."""
    for _, (_, kernel, grid, block, args) in all_cases():
        device = [cuda.to_device(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        kernel[grid, block](*device)
    cuda.synchronize()


def find_ncu():
    """The path of ncu, from the PATH or where toolkits are installed; None without one."""
    usual = [
        *Path("/usr/local").glob("cuda*/bin/ncu"),
        *Path("/opt/nvidia/nsight-compute").glob("*/ncu"),
    ]
    return shutil.which("ncu") or next((str(path) for path in sorted(usual, reverse=True)), None)


def measured():
    """ncu's counts of all cases in order, each by the names in COUNTERS."""
    ncu = find_ncu()
    if ncu is None:
        raise NotMeasured(
            "ncu (Nsight Compute) was not found: put it on the PATH; it comes with the CUDA toolkit"
        )
    command = [
        ncu,
        "--csv",
        "--page",
        "raw",
        "--print-units",
        "base",
        "--metrics",
        ",".join(COUNTERS.values()),
    ]
    done = process.run(
        [*command, "--target-processes", "all", sys.executable, "-m", __spec__.name, LAUNCH],
        timeout=TIMEOUT,
    )
    if "ERR_NVGPUCTRPERM" in done.output:
        raise NotMeasured(
            "this user may not read the GPU's counters (ERR_NVGPUCTRPERM): run as root, or have "
            "the driver loaded with NVreg_RestrictProfilingToAdminUsers=0"
        )
    if done.returncode:
        raise NotMeasured(f"ncu ended with exit code {done.returncode}:\n{done.output[-2000:]}")
    return parse(done.output)


def parse(output):
    """The counts in what `ncu --csv` printed, one dictionary for each launch.

    Takes both forms: a column for each counter (--page raw), and a row for each counter and launch.
    """
    lines = output.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise NotMeasured(f"ncu printed no table:\n{output[-2000:]}")
    launches = {}
    for row in csv.DictReader(line for line in lines[start:] if line.startswith('"')):
        if not row["ID"].strip():  # the line of units
            continue
        measured = launches.setdefault(int(row["ID"]), {})
        for name, counter in COUNTERS.items():
            if row.get("Metric Name") == counter:
                measured[name] = number(row["Metric Value"])
            elif row.get(counter):
                measured[name] = number(row[counter])
    missing = set()
    for measured in launches.values():
        missing |= COUNTERS.keys() - measured.keys()
    if missing or not launches:
        what = ", ".join(COUNTERS[name] for name in sorted(missing)) or "launches"
        raise NotMeasured(f"ncu gave no {what}")
    return [launches[key] for key in sorted(launches)]


def number(text):
    """A count as ncu prints it: 1,024."""
    return int(float(text.replace(",", "")))


def compare(ours, theirs):
    """One entry for each case: its name and its counts, ours beside ncu's."""
    if len(ours) != len(theirs):
        raise NotMeasured(f"ncu saw {len(theirs)} launches, not {len(ours)}")
    return [
        {
            "kernel": mine["kernel"],
            "counts": {key: {"tracer": mine["counts"][key], "ncu": its[key]} for key in COUNTERS},
        }
        for mine, its in zip(ours, theirs, strict=True)
    ]


def differences(entries):
    """Sentences for all counts that differ."""
    return [
        f"{entry['kernel']}: {key}: tracer {both['tracer']:,}, ncu {both['ncu']:,}"
        for entry in entries
        for key, both in entry["counts"].items()
        if both["tracer"] != both["ncu"]
    ]


def main(arguments):
    if arguments == [LAUNCH]:
        launch_all()
        return 0
    if arguments == [TRACE]:
        trace_all()
        return 0
    if not has_gpu():
        print(
            "no GPU here: nothing to hold the tracer's counts against, nothing recorded",
            file=sys.stderr,
        )
        return 2
    try:
        theirs = measured()
        ours = traced_apart()
        count = len(ours[NUMBA])
        entries = {
            NUMBA: compare(ours[NUMBA], theirs[:count]),
            CUDA_C: compare(ours[CUDA_C], theirs[count:]),
        }
    except (NotMeasured, process.Timeout) as error:
        print(f"not measured: {error}", file=sys.stderr)
        return 2
    every = [*entries[NUMBA], *entries[CUDA_C]]
    for entry in every:
        print(entry["kernel"])
        for key, both in entry["counts"].items():
            if both["tracer"] or both["ncu"]:
                mark = "" if both["tracer"] == both["ncu"] else "   differs"
                print(f"  {key:<24} tracer {both['tracer']:>7,}   ncu {both['ncu']:>7,}{mark}")
    gpu = engine.gpu()
    content = {
        "gpu": gpu.name,
        "driver": gpu.driver,
        "date": results.now(),
        "versions": results.versions(),
        "counters": COUNTERS,
        **entries,
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"tracer-{results.slug(gpu.name)}.json"
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    wrong = differences(every)
    print(f"{len(every)} launches, {len(wrong)} counts differ; recorded in {path}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
