"""Occupancy: worked examples, NVIDIA's own calculation in C, and on a GPU the driver's."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.processes import completed
from utils import has_gpu
from utils.occupancy import TABLE, occupancy


@pytest.mark.parametrize(
    "cc, threads, registers, shared, blocks, limited_by",
    [
        (
            (9, 0),
            256,
            32,
            0,
            8,
            ("warps", "registers"),
        ),  # 64 / 8 warps; 65,536 / (256 x 32) registers
        ((9, 0), 256, 33, 0, 6, ("registers",)),  # 33 x 32 rounds up to 1,280: 12 warps a quarter
        ((9, 0), 32, 16, 0, 32, ("blocks",)),  # half of the SM stays empty
        ((9, 0), 1024, 32, 0, 2, ("warps", "registers")),
        ((9, 0), 33, 16, 0, 32, ("warps", "blocks")),  # a block of 33 threads costs two warps
        ((8, 6), 256, 32, 0, 6, ("warps",)),
        ((8, 6), 1024, 32, 0, 1, ("warps",)),  # 48 warps: a second block of 32 does not fit
        ((9, 0), 256, 32, 32 * 1024, 6, ("shared memory",)),  # 228 / 33 KiB
        ((8, 0), 256, 32, 163 * 1024, 1, ("shared memory",)),
        ((7, 5), 128, 64, 16 * 1024, 4, ("shared memory",)),  # nothing reserved before 8.0
        ((9, 0), 1024, 65, 0, 0, ("registers",)),  # such a launch is refused
    ],
)
def test_worked_examples(cc, threads, registers, shared, blocks, limited_by):
    found = occupancy(cc, threads, registers, shared)
    assert found.blocks == blocks
    assert found.limited_by == limited_by
    assert found.share == blocks * -(-threads // 32) / TABLE[cc].warps


@pytest.mark.parametrize(
    "arguments, word",
    [
        (((9, 0), 0), "threads"),
        (((9, 0), 1025), "threads"),
        (((9, 0), 32, 256), "registers"),
        (((9, 0), 32, 0), "registers"),
        (((8, 6), 32, 32, 100 * 1024), "shared"),
        (((4, 2), 32), "not in the table"),
    ],
)
def test_what_no_launch_may_have_is_refused(arguments, word):
    with pytest.raises(ValueError, match=word):
        occupancy(*arguments)


# Reads lines of numbers, prints how many blocks NVIDIA's header says that an SM holds.
ORACLE = """
#include <cstdio>
#include "cuda_occupancy.h"
int main()
{
    int major, minor, warps, threads, registers;
    long shared_sm, shared_block, reserved, shared;
    while (scanf("%d %d %d %ld %ld %ld %d %d %ld", &major, &minor, &warps, &shared_sm, \
&shared_block, &reserved,
                 &threads, &registers, &shared) == 9) {
        cudaOccDeviceProp gpu;
        gpu.computeMajor = major, gpu.computeMinor = minor, gpu.warpSize = 32, gpu.numSms = 1;
        gpu.maxThreadsPerBlock = 1024, gpu.maxThreadsPerMultiprocessor = 32 * warps;
        gpu.regsPerBlock = gpu.regsPerMultiprocessor = 65536;
        gpu.sharedMemPerBlock = 48 << 10, gpu.sharedMemPerBlockOptin = shared_block;
        gpu.sharedMemPerMultiprocessor = shared_sm, gpu.reservedSharedMemPerBlock = reserved;
        cudaOccFuncAttributes kernel;
        kernel.maxThreadsPerBlock = 1024, kernel.numRegs = registers, kernel.sharedSizeBytes = 0;
        kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
        kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        kernel.maxDynamicSharedSizeBytes = shared_block, kernel.numBlockBarriers = 1;
        cudaOccDeviceState state;
        cudaOccResult result;
        int error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &gpu, &kernel, &state, \
threads, shared);
        printf("%d\\n", error ? -error : result.activeBlocksPerMultiprocessor);
    }
}
"""


def header():
    """The folder of NVIDIA's cuda_occupancy.h, which Triton brings along, or None."""
    import triton

    folders = [Path(triton.__file__).parent / "backends/nvidia/include"]
    nvcc = shutil.which("nvcc")
    folders += [Path(nvcc).resolve().parent.parent / "include"] if nvcc else []
    return next((folder for folder in folders if (folder / "cuda_occupancy.h").is_file()), None)


def test_it_agrees_with_nvidias_header(tmp_path):
    compiler = shutil.which("g++") or shutil.which("clang++")
    if not compiler or not header():
        pytest.skip("needs a C++ compiler and cuda_occupancy.h")
    (tmp_path / "oracle.cpp").write_text(ORACLE)
    subprocess.run(
        [compiler, "-I", header(), tmp_path / "oracle.cpp", "-o", tmp_path / "oracle"], check=True
    )
    rng, questions = random.Random(6), []
    for cc, sm in TABLE.items():
        for _ in range(500):
            threads = rng.choice((rng.randint(1, 1024), 32 * rng.randint(1, 32)))
            registers = rng.randint(16, 255)
            shared = rng.choice((0, rng.randint(0, sm.shared_block), rng.randint(0, 8192)))
            questions.append((cc, sm, threads, registers, shared))
    lines = "\n".join(
        f"{cc[0]} {cc[1]} {sm.warps} {sm.shared} {sm.shared_block} {sm.reserved} {threads} "
        f"{registers} {shared}"
        for cc, sm, threads, registers, shared in questions
    )
    answers = completed([tmp_path / "oracle"], input=lines, check=True).stdout.split()
    assert len(answers) == len(questions)
    for (cc, _, *launch), answer in zip(questions, answers, strict=True):
        if answer == "-2":  # CUDA_OCC_ERROR_UNKNOWN_DEVICE: a header older than this GPU
            continue
        assert occupancy(cc, *launch).blocks == int(answer), (cc, launch)
    assert len(set(answers)) > 10


@pytest.mark.skipif(not has_gpu(), reason="needs a GPU: the driver's own answer")
def test_it_agrees_with_the_driver():
    import numpy as np
    from numba import cuda

    @cuda.jit
    def kernel(out):
        tile = cuda.shared.array(500, np.float32)
        t = cuda.threadIdx.x
        tile[t % 500] = t
        cuda.syncthreads()
        out[t] = tile[(t + 1) % 500]

    out = cuda.device_array(1024, np.float32)
    kernel[1, 256](out)
    compiled = next(iter(kernel.overloads.values()))
    function = compiled._codelibrary.get_cufunc()
    context, device = cuda.current_context(), cuda.get_current_device()
    attributes = function.attrs
    for threads in (1, 32, 33, 64, 96, 128, 256, 500, 512, 768, 1024):
        for dynamic in (0, 1, 128, 5_000, 12_345, 30_000, 46_000):
            expected = context.get_active_blocks_per_multiprocessor(function, threads, dynamic)
            found = occupancy(
                device.compute_capability, threads, attributes.regs, attributes.shared + dynamic
            )
            assert found.blocks == expected, (threads, dynamic)
