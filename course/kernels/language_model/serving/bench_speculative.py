"""Speculative decoding on the trained model, on this GPU: how much faster, with how many drafted?

    python -m course.kernels.language_model.serving.bench_speculative --out spec.json --budget 80

As course.kernels.attention.bench. The model that the course carries writes at temperature 0.7; what
it drafts comes from a table of its own averages over the course's text. Alone and with a draft it
runs the same kernels, each turn one CUDA graph: with none drafted a turn is a step and a draw.
"""

import statistics

import torch

from course.kernels.bench.command import main
from course.kernels.bench.report import Report
from course.kernels.language_model import carried
from course.kernels.language_model import text as texts
from course.kernels.language_model.serving import rightness
from course.kernels.language_model.serving.drafting import Averages, Writer
from course.kernels.language_model.serving.speculative import tokens_per_turn

TEMPERATURE = 0.7
AHEAD = (0, 1, 2, 3, 4, 5, 6, 8)
PROMPTS = ("A kernel is", "Each thread reads", "Shared memory holds", "On a GPU the")
TURNS, WARM = 60, 20
MOST = 1024  # tokens of a text
NAME = "llm/speculative"


def race(report: Report) -> None:
    """Microseconds of a token, for each number of drafted ones, in rounds of all of them."""
    config, weights, tokens = carried.model(device="cuda")
    words = torch.tensor(tokens.encode(texts.everything()))
    draft = Averages.of(config, weights, words, TEMPERATURE)
    report.put("clock", "tokens read, rows of the draft", [len(words), len(draft.p)])
    found = {ahead: [] for ahead in AHEAD}  # (µs of a turn, tokens of a turn)
    for seed, prompt in enumerate(PROMPTS):
        for ahead in AHEAD:
            how = {"ahead": ahead, "temperature": TEMPERATURE, "most": MOST, "seed": seed}
            writer = Writer(config, weights, draft, tokens.encode(prompt), **how)
            found[ahead].append(measured(writer))
            if seed == 0:
                print(ahead, repr(prompt + tokens.decode(writer.text())[:150]), flush=True)
    share = statistics.mean(count for _, count in found[1]) - 1
    report.put("clock", "accepted of the first drafted", round(share, 3))
    alone = statistics.median(time for time, _ in found[0])
    speedups = {}
    for ahead in AHEAD:
        turn = statistics.median(time for time, _ in found[ahead])
        count = statistics.mean(count for _, count in found[ahead])
        each = [alone / time * count for time, count in found[ahead]]
        speedups[ahead] = alone / turn * count, (max(each) - min(each)) / 2
        told = {
            "µs of a turn": round(turn, 2),
            "tokens per turn": round(count, 3),
            "if all were accepted as often": round(tokens_per_turn(share, ahead), 3),
            "speedup": round(speedups[ahead][0], 3),
        }
        report.put("clock", f"{NAME}/{ahead}", told)
        print(ahead, told, flush=True)
        report.record(f"{NAME}/{ahead}/turn", turn / 1e6, "s")
        report.record(f"{NAME}/{ahead}/tokens_per_turn", count, "1")
        value, spread = speedups[ahead]
        report.record(f"{NAME}/{ahead}/speedup", value, "1", spread)
    best = max(speedups, key=speedups.get)
    report.record(f"{NAME}/ahead", best, "1")
    report.record(f"{NAME}/speedup", speedups[best][0], "1", speedups[best][1])


def measured(writer: Writer) -> tuple[float, float]:
    """(microseconds of a turn, tokens of a turn) of TURNS turns, after WARM."""
    writer.write(WARM)
    before = len(writer.counts())
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    marks[0].record()
    writer.write(TURNS)
    marks[1].record()
    torch.cuda.synchronize()
    counts = writer.counts()[before:]
    return 1e3 * marks[0].elapsed_time(marks[1]) / TURNS, sum(counts) / len(counts)


def check(report: Report) -> None:
    """The kernels write what the rule in Python writes, for the same chances."""
    for ahead in (0, 1, 3):
        found = report.attempt(f"{ahead} drafted", rightness.same_text, ahead)
        report.put("checks", f"{ahead} drafted: tokens that are the same", found)


if __name__ == "__main__":
    main(__doc__, {"speculative": race}, check)
