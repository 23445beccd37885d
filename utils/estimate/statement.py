"""estimate(): the counts of a launch, a GPU's constants and the model, in a sentence."""

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass

from utils.files import ASSETS
from utils.quantities import format_ms
from utils.tracer import is_cuda_c, is_triton

from . import model
from .gpus import Gpu, gpu, with_article
from .improving import Waterfall, alone, waterfall
from .model import Counts, Terms, terms
from .sampling import Launch
from .totals import count, given

JUDGED = ASSETS / "recorded" / "estimates.json"
SAID = 2  # changes that its sentence names
#: Of GPUs that nobody has judged: nine in ten within this factor is all that is claimed
UNJUDGED = 2.5


@dataclass(frozen=True)
class Estimate:
    """What a launch is estimated to take. It is no measurement, and says so.

    seconds, counts, terms: the time, what it was counted from, and each resource's own time.
    factor: nine of ten judged kernels lie within it, above or below.
    """

    gpu: Gpu
    counts: Counts
    terms: Terms
    factor: float

    @property
    def seconds(self) -> float:
        return self.terms.time

    @property
    def limit(self) -> str:
        """The resource that takes longest: a key of `model.WORDS`."""
        return self.terms.limit

    def changes(self) -> dict[str, float]:
        """What could be better in the kernel -> seconds it would then take, the best first."""
        return dict(list(alone(self.counts, self.gpu).items())[:SAID])

    def waterfall(self, most: int = 3) -> Waterfall:
        """What to change next, one change on top of the other, and what each would bring."""
        return waterfall(self.counts, self.gpu, most)

    def table(self) -> str:
        """Each resource with the time that it alone would need, the longest first."""
        rows = sorted(self.terms.seconds.items(), key=lambda row: -row[1])
        lines = [f"{format_ms(1e3 * seconds):>10}  {model.WORDS[name]}" for name, seconds in rows]
        lines.append(f"{format_ms(1e3 * self.terms.start):>10}  the launch itself")
        return "\n".join(lines)

    def __repr__(self) -> str:
        how = "" if self.gpu.how != "data sheet" else "by its data sheet; "
        said = (
            f"about {format_ms(1e3 * self.seconds)} on {with_article(self.gpu.name)} (estimate, "
            f"{how}"
            f"nine in ten within a factor of {self.factor:.1f}), limited by "
            f"{model.WORDS[self.limit]}"
        )
        changes = [f"{words} about {format_ms(1e3 * s)}" for words, s in self.changes().items()]
        return said + "".join(f"; {change}" for change in changes)


def estimate(
    launch: Launch | Callable[[int], Launch],
    gpu_name: str | Gpu = "H200",
    size: int | None = None,
    small: tuple[int, int, int] | None = None,
) -> Estimate:
    """What a launch of a Numba kernel would take on a GPU, and what limits it.

    launch: a `Launch` of the real size, its arrays `Blank`; or a function that makes one of a size,
        of which `size` is the real one and `small` are three small ones, for kernels that loop for
        long.
    gpu_name: H200, H100, T4, A100, RTX 3090, RTX 4090, RTX 5090 or B200; or a Gpu.

    Raises Unknown where there is none (a spin-wait, a loop that depends on data, a grid-wide
    barrier), LookupError for an unknown GPU.
    """
    card = gpu_name if isinstance(gpu_name, Gpu) else gpu(gpu_name)
    counted = count(launch, size, small)
    kernel = (launch if isinstance(launch, Launch) else launch(given(size))).kernel
    factor = factor_of(card.name, language_of(kernel))
    return Estimate(card, counted, terms(counted, card), factor)


def language_of(kernel: object) -> str:
    """ "numba", "cuda_c" or "triton": each has its own errors."""
    if is_triton(kernel):
        return "triton"
    return "cuda_c" if is_cuda_c(kernel) else "numba"


def factor_of(name: str, language: str) -> float:
    """Within which factor nine of ten judged kernels lie, of this GPU or of none like it."""
    found = judged().get("gpus", {}).get(name, {}).get(language)
    factor: float = found["held_out"]["p90_factor"] if found else UNJUDGED
    return factor


def off(kernel: dict) -> float:
    """By which factor a judged kernel's estimate is off, above or below."""
    ratio: float = kernel["estimate_ms"] / kernel["measured_ms"]
    return max(ratio, 1 / ratio)


def worst_of(kernels: list[dict], count: int, name: str = "H200") -> list[dict]:
    """The judged kernels of a GPU whose estimates are furthest off, the worst first."""
    mine = [one for one in kernels if one["gpu"] == name and not one["calibrates"]]
    return sorted(mine, key=off, reverse=True)[:count]


@functools.cache
def judged() -> dict:
    """What the judging wrote; empty where it has not been done."""
    return json.loads(JUDGED.read_text(encoding="utf-8")) if JUDGED.exists() else {}
