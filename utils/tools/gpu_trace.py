"""What a Python program does on the GPU and when, seen by CUPTI through torch.profiler.

    python utils/tools/gpu_trace.py SCRIPT.py

prints CSV with the columns of Nsight Systems' cuda_gpu_trace report: a row for each kernel, copy
and fill, in the order in which they began. The script runs twice, and the second run is shown: the
first one also loads libraries. CUPTI is NVIDIA's library under Nsight Systems, and comes with
PyTorch.
"""

import contextlib
import csv
import io
import json
import os
import runpy
import sys

from utils.files import scratch_folder

ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")  # categories of events in Chrome's trace format
COLUMNS = ("Start (ns)", "Duration (ns)", "Strm", "Name")


def rows_of(trace: dict) -> list[tuple]:
    """The rows of a trace as `export_chrome_trace` writes it, whose times are in microseconds."""
    events = [event for event in trace["traceEvents"] if event.get("cat") in ON_GPU]
    events.sort(key=lambda event: event["ts"])
    rows = []
    for event in events:
        start = round((event["ts"] - events[0]["ts"]) * 1000)
        length = round(event["dur"] * 1000)
        rows.append(
            (
                start,
                length,
                event["args"].get("stream", ""),
                event["name"],
            )
        )
    return rows


def profiled(script: str) -> dict:
    """The trace of a script's second run; what the script prints is left out."""
    from torch.profiler import ProfilerActivity, profile

    with contextlib.redirect_stdout(io.StringIO()):
        runpy.run_path(script, run_name="__main__")
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            runpy.run_path(script, run_name="__main__")
    with scratch_folder() as folder:
        path = folder / "trace.json"
        seen.export_chrome_trace(str(path))
        events: dict = json.loads(path.read_text(encoding="utf-8"))
        return events


def main(script: str) -> None:
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler's messages about itself
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows_of(profiled(script)))


if __name__ == "__main__":
    main(sys.argv[1])
