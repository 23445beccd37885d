"""NVIDIA's tools: how what they print is read, recorded and shown; and what is said where they are
missing.

The texts are written in the tools' formats (ncu's raw page, nsys stats, compute-sanitizer); the
numbers are made up.
"""

import json
import os
import stat
import sys

import pytest

from utils import engine, results
from utils.tools import gpu_trace, process, profilers

NCU = """==PROF== Connected to process 4711 (/srv/me/course/chapters/build/vector_adds_main)
==PROF== Profiling "one_thread" - 0: 0%....50%....100% - 3 passes
0 wrong, no error
==PROF== Disconnected from process 4711
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",\
"Grid Size","Device","CC","gpu__time_duration.sum",\
"dram__throughput.avg.pct_of_peak_sustained_elapsed"
"","","","","","","","","","","","ns","%"
"0","4711","vector_adds_main","127.0.0.1","one_thread(float *, const float *, int)","1","7",\
"(1, 1, 1)","(1, 1, 1)","0","9.0","1,234,567","0.12"
"1","4711","vector_adds_main","127.0.0.1","many_blocks(float *, const float *, int)","1","7",\
"(256, 1, 1)","(4096, 1, 1)","0","9.0","4,321","81.5"
"""
NSYS = """Processing [/tmp/nsys-1.sqlite] with [/opt/nvidia/reports/cuda_gpu_kern_sum.py]...
Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
75.0,30000,10,3000.0,2990.0,2900,3300,12.5,"void gemm<float, 128>(int, const float *)"
25.0,10000,5,2000.0,1990.0,1900,2300,12.5,relu(float *)
"""
TRACE = """Start (ns),Duration (ns),CorrId,Name
1000000,2000,1,gemm
1003000,1000,2,relu
1005000,2000,3,gemm
"""
SANITIZER = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at shift(float *, const float *, int)+0x90 in \
/srv/me/course/chapters/build/bug_memcheck.cu:6
=========     by thread (231,0,0) in block (3,0,0)
=========     Address 0x7f0000000fa0 is out of bounds
=========     Saved host backtrace up to driver entry point at kernel launch time
=========     Host Frame: main [0x8a2b] in bug_memcheck
=========
========= Invalid __global__ read of size 4 bytes
=========     at shift(float *, const float *, int)+0x90 in \
/srv/me/course/chapters/build/bug_memcheck.cu:6
=========     by thread (230,0,0) in block (3,0,0)
=========     Address 0x7f0000000fa4 is out of bounds
=========
========= ERROR SUMMARY: 2 errors
"""


@pytest.fixture
def gpu(monkeypatch):
    """A machine that says it has a GPU."""
    found = engine.GPU("NVIDIA Test", (9, 0), 1 << 30, "580.1", (13, 0), "GPU-1")
    monkeypatch.setattr(engine, "gpu", lambda: found)
    monkeypatch.setattr(engine, "has_gpu", lambda: True)
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """No recorded reports but those that the test makes."""
    monkeypatch.setattr(profilers, "FOLDER", tmp_path / "reports")
    return tmp_path / "reports"


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """tool(name, output, status): a program of that name that prints this, the only one on the
    PATH.
    """
    monkeypatch.setenv("PATH", str(tmp_path) + os.pathsep + "/usr/bin:/bin")

    def make(name, output, status=0):
        (tmp_path / f"{name}.said").write_text(output)
        path = tmp_path / name
        path.write_text(f'#!/bin/sh\necho "$@" >> {path}.asked\ncat {path}.said\nexit {status}\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return lambda: path.with_name(f"{name}.asked").read_text()

    return make


def test_ncu_reads_the_raw_page_with_its_units(gpu, folder, tool):
    asked = tool("ncu", NCU)
    table = profilers.ncu(["build/vector_adds_main"], "adds")
    assert [row["kernel"] for row in table.rows] == ["one_thread", "many_blocks"]
    assert table.rows[1]["grid"] == "(4096,1,1)" and table.rows[1]["time"] == "4,321 ns"
    assert profilers.number(table.rows[0]["time"]) == 1_234_567
    assert table.rows[1]["memory throughput"] == "81.5 %"
    assert "--metrics gpu__time_duration.sum," in asked()
    assert "many_blocks" in repr(table) and "==PROF==" not in repr(table)
    assert list(table.select("kernel", "time").rows[0]) == ["kernel", "time"]
    figure = profilers.bars(table, "memory throughput")
    assert "one_thread: memory throughput 0.12 %" in figure.alt
    assert [text.get_text() for text in figure.axes[0].texts] == ["0.12 %", "81.5 %"]


def test_nsys_profiles_once_and_gives_each_report(gpu, folder, tool, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    asked = tool("nsys", NSYS)
    table = profilers.nsys(["python", "mlp.py"], "mlp")
    assert [row["Instances"] for row in table.rows] == ["10", "5"]
    assert table.rows[0]["Name"] == "void gemm<float, 128>(int, const float *)"
    profilers.nsys(["python", "mlp.py"], "mlp", report="cuda_api_sum")
    calls = asked().splitlines()
    assert [call.split()[0] for call in calls] == ["profile", "stats", "stats"]
    assert "--report cuda_api_sum" in calls[2]


def test_a_trace_of_cupti_is_like_one_of_nsys():
    def event(category, start, name):
        stream = {"stream": 7}
        return {"cat": category, "ts": start, "dur": 1.5, "name": name, "args": stream, "ph": "X"}

    events = [
        event("kernel", 110.25, "relu"),
        event("cuda_runtime", 90.0, "cudaLaunchKernel"),
        event("gpu_memcpy", 100.0, "Memcpy HtoD (Pageable -> Device)"),
        {"ph": "M", "name": "process_name"},
    ]
    assert gpu_trace.rows_of({"traceEvents": events}) == [
        (0, 1500, 7, "Memcpy HtoD (Pageable -> Device)"),
        (10250, 1500, 7, "relu"),
    ]


def test_cupti_is_asked_in_a_process_of_its_own(gpu, folder, monkeypatch):
    said = 'a message\nStart (ns),Duration (ns),Strm,Name\n0,1500,7,"relu<a, b>"\n'
    asked = []

    def run(command, **_):
        asked.extend(command)
        return process.Completed(command, 0, said)

    monkeypatch.setattr(profilers.process, "run", run)
    table = profilers.gpu_trace("build/mlp.py", "mlp")
    assert asked[0] == sys.executable and asked[-1] == "build/mlp.py"
    assert table.rows[0]["Name"] == "relu<a, b>"
    assert "1 kernels and copies" in profilers.timeline(table).alt


def test_timeline_has_a_row_a_name():
    table = profilers.Table("nsys", TRACE)
    fig = profilers.timeline(table)
    axes = fig.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["gemm", "relu"]
    bars = [collection.get_paths() for collection in axes.collections]
    assert [len(paths) for paths in bars] == [2, 1]
    assert "3 kernels and copies in 2 rows" in fig.alt


def test_sanitizer_report_is_cut_to_what_matters(gpu, folder, tool):
    asked = tool("compute-sanitizer", SANITIZER, status=1)  # it exits with 1 when the program did
    report = profilers.sanitizer("memcheck", ["build/bug_memcheck"], "bug")
    assert "--tool memcheck build/bug_memcheck" in asked()
    assert "Host Frame" not in report.text
    assert (
        report.text.count("Invalid __global__ read") == 1
        and "(and 1 more like this)" in report.text
    )
    assert "ERROR SUMMARY: 2 errors" in report.text


def test_a_report_is_recorded_only_while_recording_and_then_shown_elsewhere(
    gpu, folder, tool, monkeypatch, tmp_path
):
    tool("compute-sanitizer", SANITIZER)
    profilers.sanitizer("memcheck", ["build/bug_memcheck"], "bug")
    assert not folder.exists()
    monkeypatch.setenv(results.RECORD, str(tmp_path / "results.jsonl"))
    made = profilers.sanitizer("memcheck", ["build/bug_memcheck"], "bug")
    file = folder / "bug.memcheck.txt"
    head = json.loads(file.read_text().splitlines()[0])
    assert (
        head["gpu"] == "NVIDIA Test"
        and head["driver"] == "580.1"
        and head["command"] == made.command
    )
    assert "numpy" in head["versions"] and head["date"] == made.date
    assert "/srv/me" not in file.read_text() and "in build/bug_memcheck.cu:6" in file.read_text()

    monkeypatch.setattr(engine, "has_gpu", lambda: False)
    shown = profilers.sanitizer("memcheck", ["build/bug_memcheck"], "bug")
    assert shown.recorded and "Invalid __global__ read" in shown.text
    assert f"recorded on NVIDIA Test, {made.date[:10]}" in repr(shown)
    assert "there is no GPU here" in repr(shown)


def test_nothing_there_and_nothing_recorded_is_one_honest_line(folder, monkeypatch):
    monkeypatch.setattr(engine, "has_gpu", lambda: False)
    monkeypatch.setattr(profilers, "find", lambda tool: None)
    for report in (
        profilers.ncu(["x"], "x"),
        profilers.nsys(["x"], "x"),
        profilers.cuda_gdb("s", "x", "x"),
        profilers.sanitizer("memcheck", ["x"], "x"),
        profilers.nvidia_smi(name="x"),
    ):
        assert not report
        assert "\n" not in repr(report)
        assert "is not on this machine" in repr(report) and "no report is recorded yet" in repr(
            report
        )
    assert "pip install 'cuda-toolkit[sanitizer]" in repr(
        profilers.sanitizer("memcheck", ["x"], "x")
    )


def test_forbidden_counters_and_a_failing_tool_say_why(gpu, folder, tool):
    tool("ncu", "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", status=1)
    assert "ERR_NVGPUCTRPERM" in repr(profilers.ncu(["x"], "x")) and not profilers.ncu(["x"], "x")
    tool("ncu", "==ERROR== no such metric", status=3)
    assert "exit status 3" in repr(profilers.ncu(["x"], "x")) and "no such metric" in repr(
        profilers.ncu(["x"], "x")
    )


def test_recorded_reports_are_sound():
    found = [p for p in (profilers.FOLDER).glob("*") if p.suffix in (".csv", ".txt")]
    for path in found:
        head = json.loads(path.read_text().splitlines()[0])
        assert {"gpu", "driver", "date", "versions", "command"} <= set(head), path
        assert "/home/" not in path.read_text() and "/root/" not in path.read_text(), path
    assert sum(path.stat().st_size for path in found) < 1_000_000


def test_cuda_gdb_without_its_words_about_the_host():
    text = """[Thread debugging using libthread_db enabled]
Using host libthread_db library "/lib/x86_64-linux-gnu/libthread_db.so.1".
[New Thread 0x7ffff1bb3000 (LWP 1124)]
[Switching focus to CUDA kernel 0, grid 1, block (0,0,0), thread (0,0,0), device 0, sm 124, warp \
0, lane 0]
$1 = {x = 3, y = 0, z = 0}
[Thread 0x7ffff08e2000 (LWP 1125) exited]
"""
    assert profilers.on_device(text).splitlines() == [
        text.splitlines()[3],
        "$1 = {x = 3, y = 0, z = 0}",
    ]
