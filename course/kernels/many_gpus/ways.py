"""Which way to cut a training when? Memory and time of each way, from a model of both.

A transformer of P parameters in L layers, T tokens a step, n GPUs; bf16 with Adam. What counts:

    memory   16 bytes a parameter (2 weight, 2 gradient, 12 Adam), less what is shared out
    work     6 P T operations, shared out among the GPUs
    sent     what a rank sends: see `WAYS`; a layer hands on T numbers of its width, 2 bytes each

Sources: ZeRO (https://arxiv.org/abs/1910.02054), Megatron-LM (https://arxiv.org/abs/1909.08053),
GPipe (https://arxiv.org/abs/1811.06965). Activations are not counted; real steps take longer.
"""

from dataclasses import dataclass

#: Of its peak, what a GPU reaches in large products: a round number, the same for all ways.
EFFICIENCY = 0.5
MICRO_BATCHES = 16  # of the pipeline
BYTES = 2  # of a bf16 number


@dataclass(frozen=True)
class Job:
    """What is trained, on what. memory: bytes a GPU; rate: operations a second; beta: bytes a
    second of a GPU's link in one direction.
    """

    parameters: float
    gpus: int
    memory: float
    tokens: float
    rate: float
    beta: float
    layers: int = 32

    @property
    def width(self) -> float:
        """Numbers that a layer hands on for a token: a layer has about 12 width² parameters."""
        return (self.parameters / (12 * self.layers)) ** 0.5


@dataclass(frozen=True)
class Way:
    """One way: bytes on each GPU, and the seconds of a step."""

    name: str
    bytes: float
    work: float
    messages: float  # seconds, of which...
    beside: bool  # ...those beside the work cost nothing as long as they are shorter
    idle: float  # share of the time

    @property
    def seconds(self) -> float:
        """Of a step: messages beside the work, or after it; what idles makes it longer."""
        busy = max(self.work, self.messages) if self.beside else self.work + self.messages
        return busy / (1 - self.idle)


def ways(job: Job) -> list[Way]:
    """Every way, for a job."""
    n, p = job.gpus, job.parameters
    work = 6 * p * job.tokens / (n * job.rate * EFFICIENCY)
    share = (n - 1) / n
    weights = share * BYTES * p / job.beta  # seconds of one all-gather or reduce-scatter
    handed_on = job.tokens * job.width * BYTES / job.beta
    bubble = (n - 1) / (MICRO_BATCHES + n - 1)
    return [
        Way("data parallel", 16 * p, work, 2 * weights, True, 0),
        Way("+ Adam's state shared (stage 1)", (4 + 12 / n) * p, work, 2 * weights, True, 0),
        Way("+ gradients shared (stage 2)", (2 + 14 / n) * p, work, 2 * weights, True, 0),
        Way("+ parameters shared (stage 3, FSDP)", 16 * p / n, work, 3 * weights, True, 0),
        Way("tensor parallel", 16 * p / n, work, 8 * job.layers * share * handed_on, False, 0),
        Way("pipeline", 16 * p / n, work, 2 * handed_on, True, bubble),
    ]


def best(job: Job) -> Way | None:
    """The fastest way that fits into memory; of two as fast, the one that shares less."""
    fitting = [way for way in ways(job) if way.bytes <= job.memory]
    return min(fitting, key=lambda way: way.seconds, default=None)


def table(job: Job) -> str:
    """All ways as lines of text, the fastest that fits with a mark."""
    chosen = best(job)
    lines = [f"{'':36} {'GB a GPU':>9} {'messages':>10} {'idle':>5} {'step':>9}"]
    for way in ways(job):
        fits = "" if way.bytes <= job.memory else "  does not fit"
        mark = "  <- fastest that fits" if way == chosen else fits
        lines.append(
            f"{way.name:36} {way.bytes / 1e9:9.1f} {way.messages * 1e3:7.1f} ms {way.idle:5.0%} "
            f"{way.seconds * 1e3:6.0f} ms{mark}"
        )
    return "\n".join(lines)


def job(
    billions: float,
    gpus: int,
    gigabytes: float,
    link: float,
) -> Job:
    """A job in the units of sliders: 1e9 parameters, GB a GPU, GB/s of a link.

    16,384 tokens a GPU and step, 1e15 operations a second: a round H200.
    """
    return Job(billions * 1e9, gpus, gigabytes * 1e9, 16384 * gpus, rate=1e15, beta=link * 1e9)
