"""What a training step of PyTorch launches, and how much of its time is launches."""

import os
import time

from utils import engine, results

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler's messages about itself

STEPS = 10  # profiled
ON_A_GPU = 256  # digits a step of the recorded runs: the chapter's batch where there is a GPU
NAME = f"mnist/profile/pytorch_{ON_A_GPU}/"  # of the recorded numbers
_measured: dict[str, float] = {}  # "step": microseconds of PyTorch's step, in this process


def profile(step, warm_up: int = 3):
    """PyTorch's profile of ten calls of `step`."""
    from torch import profiler

    for _ in range(warm_up):
        step()
    activities = [profiler.ProfilerActivity.CPU]
    if engine.has_gpu():
        activities.append(profiler.ProfilerActivity.CUDA)
    with profiler.profile(activities=activities, acc_events=True) as recorder:
        for _ in range(STEPS):
            step()
    return recorder


def shares(recorder, rows: int = 12) -> tuple[float, float]:
    """What took the time of a step: kernels on a GPU, operators on a CPU.

    Prints the longest. Returns launches and microseconds a step.
    """
    entries = [entry for entry in recorder.key_averages() if _counts(entry)]
    entries.sort(key=_own_time, reverse=True)
    total = sum(map(_own_time, entries))
    launches = sum(entry.count for entry in entries) / STEPS
    if engine.has_gpu():
        print("kernels on this GPU, of a step:")
    else:
        print("operators on this CPU (not a GPU: shares, no speeds), of a step:")
    for entry in entries[:rows]:
        share = _own_time(entry) / total
        print(f"{share:6.1%} {entry.count / STEPS:5.0f} × {entry.key[:85]}")
    print(f"{launches:.0f} in all, {len(entries)} different ones")
    return launches, total / STEPS


def _own_time(entry) -> float:
    if engine.has_gpu():
        return entry.self_device_time_total
    return entry.self_cpu_time_total


def _counts(entry) -> bool:
    if _own_time(entry) <= 0 or entry.key.startswith("Optimizer."):
        return False
    return not engine.has_gpu() or "CUDA" in str(entry.device_type)


def launches_of_the_step(step, launches: float, busy: float) -> float | None:
    """Print how long the GPU waits in a step; microseconds a step, or None without a GPU.

    launches, busy: kernels and microseconds of GPU work in a step, from `shares`. Without a GPU
    the recorded numbers of one are shown.
    """
    if not engine.has_gpu():
        _print_recorded()
        return None
    step_us = _time(step)
    waits = 1 - min(busy / step_us, 1)
    print(
        f"{launches:.0f} kernels, {busy:,.0f} µs of GPU work, in a step of {step_us:,.0f} µs: "
        f"for {waits:.0%} of the time the GPU waits"
    )
    results.record(NAME + "kernels", launches, "1")
    results.record(NAME + "busy", busy, "µs")
    results.record(NAME + "step", step_us, "µs")
    _measured["step"] = step_us
    return step_us


def pytorch_step() -> tuple[float, str] | None:
    """(microseconds, whose) of PyTorch's eager step: as measured in this process, else recorded."""
    if "step" in _measured:
        return _measured["step"], "measured above"
    entry = results.find(NAME + "step")
    return (entry["value"], _origin(entry)) if entry else None


def _time(step, steps: int = 100) -> float:
    """Microseconds a step."""
    import torch

    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e6 / steps


def _print_recorded() -> None:
    names = ("kernels", "busy", "step")
    entries = {name: results.find(NAME + name) for name in names}
    if not entries["step"]:
        print("no GPU here, so no launches to time (none are recorded yet)")
        return
    kernels, busy, step = (entries[name]["value"] for name in names)
    print(
        f"no GPU here; {_origin(entries['step'])}: {kernels:.0f} kernels, {busy:,.0f} µs of GPU "
        f"work, in a step of {step:,.0f} µs at batch {ON_A_GPU}"
    )


def _origin(entry: dict) -> str:
    return f"recorded on {entry['gpu']}, {entry['date'][:10]}"


#: Keep a number of this run, where runs are recorded
record = results.record


def step_of_ours(result: dict, batch: int) -> float | None:
    """Microseconds a step of the naive trainer from its result; kept for the records.

    Without a GPU the recorded time of one is printed, and None returned.
    """
    if engine.has_gpu():
        micro = 1000 * result["milliseconds"] / len(result["losses"])
        results.record(f"mnist/naive/step_{batch}", micro, "µs")
        return micro
    entry = results.find(f"mnist/naive/step_{ON_A_GPU}")  # the batch here is a smaller one
    if entry:
        micro = entry["value"]
        print(f"no GPU here; {_origin(entry)}: {micro:,.0f} µs per step of {ON_A_GPU} digits")
    else:
        print("no GPU here, so no time (none is recorded yet)")
    return None
