"""What the chapter's cells try: a prompt with three continuations, a server, a draft."""

import functools
from collections.abc import Callable

from course.kernels.language_model import text
from course.kernels.language_model.serving import scheduler, speculative
from course.kernels.language_model.serving.engine import Engine, Request
from course.kernels.language_model.serving.models import MODELS
from course.kernels.language_model.serving.sampling import Sampling
from course.kernels.language_model.serving.scheduler import Rules, Scheduler
from course.kernels.language_model.serving.server import Background
from course.kernels.language_model.serving.speculative import Chance, Counts, Reader
from utils.files import ROOT

BLOCKS = 64
WARM = Sampling(temperature=0.7)
RUNNING = []  # the notebook's server


@functools.cache
def model():
    """(runner, tokens) of the model that the course carries."""
    return MODELS["trained"](BLOCKS)


def continued(prompt: str, choices: int, most: int, rules: Rules | None = None) -> list[str]:
    """A prompt's continuations, all at the same time, by these rules."""
    runner, tokens = model()
    engine = Engine(runner, Scheduler(BLOCKS, rules=rules))
    engine.add(Request(tokens.encode(prompt), most, WARM, choices, seed=1))
    written = [[] for _ in range(choices)]
    while engine.busy:
        for drawn in engine.step():
            written[drawn.choice].append(drawn.token)
    return [tokens.decode(each) for each in written]


def choices(
    prompt: str, must_copy: Callable = scheduler.must_copy, count: int = 3, most: int = 16
) -> None:
    """Print continuations of a prompt that share its blocks, and whether each is its own."""
    own = continued(prompt, count, most)
    shared = continued(prompt, count, most, Rules(must_copy=must_copy))
    for alone, found in zip(own, shared, strict=True):
        mark = "✓" if found == alone else "✗"
        print(f"{mark} {prompt}{found}".replace("\n", " "))
        if found != alone:
            print(f"  {prompt}{alone}".replace("\n", " "), "(with blocks of its own)")


def server() -> Background:
    """A server of the model in this notebook, instead of the one before."""
    while RUNNING:
        RUNNING.pop().stop()
    runner, tokens = model()
    RUNNING.append(Background(Engine(runner, Scheduler(BLOCKS)), tokens, name="trained").start())
    return RUNNING[0]


@functools.cache
def draft() -> Counts:
    """What follows each two tokens in the course's glossary, and in its papers beside the code."""
    tokens = model()[1]
    words = text.joined([(ROOT / name).read_text(encoding="utf-8") for name in text.PAPERS])
    return Counts(tokens.encode(words), len(tokens.pieces), most=2)


def drafted(prompt: str, ahead: int, turns: int = 30, seed: int = 1) -> list[list[str]]:
    """Turn by turn, the tokens that speculative decoding writes; ahead: how many are drafted."""
    runner, tokens = model()
    reader = Reader(runner, WARM)
    written = speculative.write(reader, draft(), tokens.encode(prompt), ahead, Chance(seed))
    return [[tokens.decode([token]) for token in next(written)] for _ in range(turns)]
