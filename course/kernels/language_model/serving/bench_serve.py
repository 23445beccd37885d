"""Serve 256 requests at once, and as many that come one after the other, on this GPU.

    python -m course.kernels.language_model.serving.bench_serve --out serve.json --budget 120

As course.kernels.attention.bench. The model: 1.24 billion parameters, bfloat16, random weights,
which write greedily. The requests are those of a bench that others use, too (nano-vllm's, 2025):
prompts of 100 to 1,024 tokens, answers of 100 to 1,024, drawn evenly, no token alike. Tokens per
second are the answers' tokens over the time until the last has come. Then the same requests come at
random, at a share of that rate, and each one's wait for its first token counts.
"""

import random
import statistics
import time

import torch

from course.kernels.bench.command import main
from course.kernels.bench.report import Report
from course.kernels.language_model import problem
from course.kernels.language_model.problem import ONE_BILLION
from course.kernels.language_model.serving import rightness
from course.kernels.language_model.serving.batch import BatchRunner
from course.kernels.language_model.serving.engine import Engine, Request
from course.kernels.language_model.serving.scheduler import Scheduler

REQUESTS = 256
TOKENS = (100, 1024)  # of prompts and of answers
BLOCKS = 24_000
BUDGET = 512
LONGEST = 2 * TOKENS[1]
SHARE = 0.7  # of the rate at which requests come, where they come at random
NAME = f"llm/serve/{REQUESTS}"


def requests(seed: int = 0) -> list[Request]:
    """256 of them."""
    chance = random.Random(seed)
    made = []
    for _ in range(REQUESTS):
        prompt = [chance.randrange(ONE_BILLION.vocabulary) for _ in range(chance.randint(*TOKENS))]
        made.append(Request(prompt, chance.randint(*TOKENS)))
    return made


def serve(runner: BatchRunner, asked: list[tuple[float, Request]], **how) -> dict:
    """Serve requests that come at (seconds, request). What was seen: seconds, waits, steps.

    how: as for Scheduler.
    """
    engine = Engine(runner, Scheduler(runner.blocks, BUDGET, **how), ahead=True)
    coming = sorted(asked, key=lambda each: each[0], reverse=True)
    came, first, latest, gaps = {}, [], {}, []
    tokens = steps = preempted = 0
    begun = time.perf_counter()
    while coming or engine.busy:
        now = time.perf_counter() - begun
        while coming and coming[-1][0] <= now:
            at, request = coming.pop()
            came[request] = at
            engine.add(request)
        if not engine.busy:
            time.sleep(max(0.0, coming[-1][0] - now))
            continue
        drawn = engine.step()
        now = time.perf_counter() - begun
        steps += 1
        tokens += len(drawn)
        preempted += len(engine.plan.preempted)
        for each in drawn:
            if each.request in latest:
                gaps.append(now - latest[each.request])
            else:
                first.append(now - came[each.request])
            latest[each.request] = now
    return {
        "seconds": now,
        "tokens": tokens,
        "steps": steps,
        "preempted": preempted,
        "first": first,
        "gaps": gaps,
    }


def runner_for(report: Report, most: int) -> BatchRunner:
    """The model, with its graphs made."""
    weights = problem.weights(ONE_BILLION, 0, torch.bfloat16, "cuda")
    runner = BatchRunner(ONE_BILLION, weights, BLOCKS, LONGEST)
    begun = time.monotonic()
    runner.prepare(most)
    report.put("clock", "graphs made, seconds", round(time.monotonic() - begun, 1))
    return runner


def all_at_once(report: Report) -> None:
    """Throughput, and then the same requests at random."""
    runner = runner_for(report, BUDGET)
    profile_steps(report, runner)
    asked = requests()
    expected = sum(request.most for request in asked)
    rates = []
    for repeat in range(3):
        found = serve(runner, [(0.0, request) for request in requests()], places=REQUESTS)
        assert found["tokens"] == expected, f"{found['tokens']} tokens, not {expected}"
        rates.append(found["tokens"] / found["seconds"])
        report.put("clock", f"{NAME} {repeat}", summary(found))
        if report.left() < 3 * found["seconds"]:
            break
    rate = statistics.median(rates)
    report.record(f"{NAME}/tokens_per_second", rate, "token/s", (max(rates) - min(rates)) / 2)
    at_random(report, runner, rate * SHARE * REQUESTS / expected)


def at_random(report: Report, runner: BatchRunner, rate: float) -> None:
    """Requests that come at random, so many per second on average."""
    chance, now, asked = random.Random(1), 0.0, []
    for request in requests(1):
        asked.append((now, request))
        now += chance.expovariate(rate)
    found = serve(runner, asked, places=REQUESTS)
    report.put("clock", f"{NAME} at random, {rate:.1f} per second", summary(found))
    for name, values in {"first_token": found["first"], "next_token": found["gaps"]}.items():
        cuts = statistics.quantiles(values, n=20)
        report.record(f"{NAME}/{name}", statistics.median(values), "s", (cuts[14] - cuts[4]) / 2)
        report.record(f"{NAME}/{name}/slowest_twentieth", cuts[18], "s")


def profile_steps(report: Report, runner: BatchRunner) -> None:
    """Milliseconds that the GPU takes for a step of each size, with 600 tokens before each row."""
    for size, rows in sorted(runner._rows.items()):
        rows.positions.fill_(600)
        rows.lengths.fill_(601)
        rows.tables.random_(0, BLOCKS)
        rows.run()
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        marks[0].record()
        for _ in range(5):
            rows.run()
        marks[1].record()
        torch.cuda.synchronize()
        report.put("clock", f"step of {size}, ms", marks[0].elapsed_time(marks[1]) / 5)


def summary(found: dict) -> dict:
    """In numbers."""
    said = {name: found[name] for name in ("seconds", "tokens", "steps", "preempted")}
    said["tokens per second"] = round(found["tokens"] / found["seconds"])
    said["first token, median"] = statistics.median(found["first"])
    said["next token, median"] = statistics.median(found["gaps"])
    print(said, flush=True)
    return said


def check(report: Report) -> None:
    """The runner against float64 in small; without a GPU on the CPU runtime."""
    error = report.attempt("batch", rightness.check)
    report.put("checks", "batch", error)


PARTS = {"serve": all_at_once}

if __name__ == "__main__":
    main(__doc__, PARTS, check)
