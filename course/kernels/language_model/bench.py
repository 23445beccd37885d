"""Check the megakernel, then race it against PyTorch on this GPU.

    python -m course.kernels.language_model.bench --out results.json --budget 100

The work: one token of a model of Llama 3.2 1B's shape (random weights), at position 1,000. Each
form of the kernel is held to float64 at full size before it is timed. The form that was fastest in
earlier sweeps races PyTorch in every mode that its users would try; then all forms race each other,
while the budget lasts. Every result is written as soon as it is there; a failure ends nothing.
Without a GPU the forms are checked in toy sizes only.
"""

import functools

import torch

from course.kernels.bench.command import main
from course.kernels.bench.races import fastest, race, record_share, record_speedup
from course.kernels.bench.report import Report
from course.kernels.language_model import problem, pytorch_modes, reference, rightness
from course.kernels.language_model.megakernel import NEEDS, Form, Megakernel, form_for
from course.kernels.language_model.plain import Plain
from course.kernels.language_model.problem import ONE_BILLION, TOY, Config
from course.kernels.language_model.quantized import rounded
from course.kernels.mnist_cnn.pytorch_modes import as_graph
from utils import timing

POSITION = 1000
ROOM = 1408  # positions of the cache: the plain form moves on while it is timed
#: Those worth trying, by (bits, batch), first the fastest of earlier sweeps: fewer bytes on their
#: way at once leave the memory freer for what blocks tell each other, more keep it busier
FORMS = {
    (16, 1): [
        form_for(16),
        *(Form(pieces=p, flight=f) for p, f in ((2, 3), (1, 2), (2, 2), (4, 3), (4, 4), (4, 5))),
    ],
    (16, 8): [form_for(16, 8), Form(batch=8, pieces=2, flight=2)],
    (8, 1): [form_for(8), Form(8), Form(8, flight=3)],
    (4, 1): [form_for(4), Form(4), Form(4, tiles=4)],
}
#: In toy sizes, where a warp's columns are few
TOYS = (
    Form(batch=2, warps=2, slice=32, stages=3),
    Form(batch=8, warps=4, slice=64, pieces=2, stages=4, flight=2, ahead=20),
    Form(8, batch=2, warps=2, slice=256, pieces=2, stages=5),
    Form(4, warps=2, slice=128, together=4, stages=8),
)


@functools.cache
def given(batch: int) -> tuple:
    """(config, weights, cache, token, position), all random."""
    weights = problem.weights(ONE_BILLION, 0, torch.bfloat16, "cuda")
    cache = rightness.filled(ONE_BILLION, batch, ROOM, torch.bfloat16, 0)
    token = torch.arange(batch, device="cuda") * 1000 + 17
    position = torch.full((batch,), POSITION, device="cuda")
    return ONE_BILLION, weights, cache, token, position


@functools.cache
def exact_logits(bits: int, batch: int) -> torch.Tensor:
    """In float64, of weights as `bits` bits have them."""
    config, weights, cache, token, _ = given(batch)
    weights = rightness.doubled(rounded(weights, bits))
    cache = problem.Cache(cache.k.double(), cache.v.double(), cache.table)
    return reference.decode(config, weights, cache, token, POSITION)


@functools.cache
def megakernel(form: Form) -> Megakernel:
    """At one position, on weights packed for the form."""
    return Megakernel(*given(form.batch), form, advance=0)


def plain(batch: int) -> Plain:
    """On its own token and position, which move on."""
    config, weights, cache, token, position = given(batch)
    return Plain(config, weights, cache, token.clone(), position.clone())


def prove_whole(decoder, bits: int, batch: int) -> float:
    """The error of a first step's logits, as a share of what roundings explain; at most 1."""
    decoder.token.copy_(given(batch)[3])
    decoder.logits.fill_(torch.nan)
    decoder.step()
    exact = exact_logits(bits, batch)
    largest = (decoder.logits - exact).abs().max() / exact.abs().max()
    error = largest.item() / rightness.bound(ONE_BILLION, torch.bfloat16)
    assert error <= 1, f"{error:.3g} times what roundings explain"
    assert torch.equal(decoder.token.long(), decoder.logits.argmax(-1)), "the token is another one"
    return error


def prove_form(report: Report, form: Form) -> Form:
    """The form, right at full size."""
    name = f"llm/{form.bits} bits, batch {form.batch}: {form}"
    report.put("checks", name, prove_whole(megakernel(form), form.bits, form.batch))
    return form


def race_forms(report: Report) -> None:
    """All forms, whether the first of a line is still the fastest."""
    for (bits, batch), forms in FORMS.items():
        name = f"llm/{bits} bits, batch {batch}"
        graphs = functools.cache(lambda form: as_graph(megakernel(form).step))
        best = fastest(
            report,
            name,
            {str(form): form for form in forms},
            functools.partial(prove_form, report),
            lambda form, graphs=graphs: graphs(form)(),
        )
        report.put("clock", name, str(best))


def token_bytes(bits: int, batch: int) -> int:
    """The fewest bytes of a step."""
    return ONE_BILLION.bytes_per_token(POSITION, bits, batch)


def race_decode(report: Report, batch: int, **modes) -> None:
    """The megakernel and the plain form beside PyTorch. modes: of `pytorch_modes.rivals`."""
    name = f"llm/decode/{batch}"
    ours = megakernel(prove_form(report, FORMS[16, batch][0]))
    simple = plain(batch)
    report.put("checks", f"{name}/plain", prove_whole(simple, 16, batch))
    runs = {"ours": as_graph(ours.step), "ours, plain": as_graph(simple.step)}
    theirs = pytorch_modes.rivals(report, name, *given(batch)[:2], batch, POSITION, **modes)
    timings = race(report, name, runs | theirs, bytes=token_bytes(16, batch))
    report.record(f"{name}/time", timings["ours"].median, "ms", timings["ours"].spread)
    report.record(f"{name}/bytes", token_bytes(16, batch), "B")
    record_share(report, f"{name}/share_of_copy", timings["ours"])
    record_speedup(report, f"{name}/speedup_over_pytorch_best", timings, theirs)


def race_quantized(report: Report) -> None:
    """Weights of 8 and 4 bits beside those of 16."""
    forms = {bits: prove_form(report, FORMS[bits, 1][0]) for bits in (16, 8, 4)}
    runs = {f"{bits} bits": as_graph(megakernel(form).step) for bits, form in forms.items()}
    timings = race(report, "llm/decode_bits/1", runs, "16 bits")
    for bits in (8, 4):
        label = "int4" if bits == 4 else "fp8"
        value, spread = timing.speedup(timings[f"{bits} bits"], timings["16 bits"])
        report.record(f"llm/decode_{label}/1/speedup_over_bf16", value, "1", spread)


PARTS = {
    "decode": functools.partial(race_decode, batch=1),
    "quantized": race_quantized,
    "decode_8": functools.partial(race_decode, batch=8),
    "forms": race_forms,
}


def toy(form: Form):
    """What makes a decoder of this form, as `rightness` takes it."""

    def make(config: Config, weights, cache, token, position):
        return Megakernel(config, weights, cache, token, position, form, blocks=3)

    return make


def check_all(report: Report) -> None:
    """The plain form and forms of the megakernel in toy sizes."""
    makers = {"plain": (Plain, 2, 16)}
    if NEEDS.met() or not torch.cuda.is_available():
        makers |= {str(form): (toy(form), form.batch, form.bits) for form in TOYS}
    for name, (make, batch, bits) in makers.items():
        prove = functools.partial(rightness.prove, batch=batch, bits=bits, steps=2)
        error = report.attempt(name, prove, make, TOY, torch.bfloat16)
        if error is not None:
            report.put("checks", name, error)


if __name__ == "__main__":
    main(__doc__, PARTS, check_all)
