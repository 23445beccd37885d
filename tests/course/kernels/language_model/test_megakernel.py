"""The megakernel: every form against float64 on the CPU runtime, in orders that are hostile; each
barrier is needed; weights of fewer bits; what NVIDIA's compiler makes of it.
"""

import re
import shutil
from functools import partial

import pytest
import torch

from course.kernels.language_model import megakernel, quantized, rightness
from course.kernels.language_model.bench import FORMS, TOYS, toy
from course.kernels.language_model.megakernel import Form, Megakernel, Sizes
from course.kernels.language_model.plain import KERNELS
from course.kernels.language_model.problem import EIGHT_BILLION, ONE_BILLION, SMALL, TOY
from tests.compiling import needs_nvcc, unspilled
from utils import cuda_c, has_gpu

MORE = pytest.mark.nightly("by day some of the forms")
ON_CPU = pytest.mark.skipif(has_gpu(), reason="a wrong kernel may hang a GPU")
FORM = Form(batch=2, warps=2, slice=32, stages=3)
STARTS = [30, 63]

# ---- every form is right


FIRST, *OTHERS = TOYS  # by day the first writes eight tokens, below


@pytest.mark.parametrize("form", [pytest.param(FIRST, marks=MORE), *OTHERS], ids=str)
def test_a_form_is_right(form):
    start = [5, 17, 31, 32, 63, 64, 70, 0][: form.batch]
    prove = partial(rightness.prove, batch=form.batch, bits=form.bits, steps=2, start=start)
    assert 0 < prove(toy(form), TOY, torch.bfloat16)


@MORE
@pytest.mark.parametrize("blocks", [1, 2, 7])
@pytest.mark.parametrize("flight", [1, 2, 3])
def test_any_number_of_blocks_and_of_stages_on_their_way(blocks, flight):
    form = Form(warps=2, slice=64, pieces=2, stages=3, flight=flight)
    make = partial(Megakernel, form=form, blocks=blocks)
    rightness.prove(make, TOY, torch.bfloat16, batch=1, steps=2, start=[40])


@MORE
@pytest.mark.parametrize("bits, together", [(16, 2), (16, 4), (8, 2), (4, 4)])
def test_a_model_whose_sizes_are_no_multiples(bits, together):
    form = Form(bits, batch=2, warps=4, slice=128, stages=4, together=together)
    prove = partial(rightness.prove, batch=2, bits=bits, steps=2, start=[3, 90])
    prove(toy(form), SMALL, torch.bfloat16)


def test_tokens_follow_one_another():
    """Launch after launch, with what the one before left: token, position, counters."""
    rightness.prove(toy(FORM), TOY, torch.bfloat16, batch=2, steps=8)


def test_a_position_can_be_kept():
    start = torch.tensor(STARTS, device=rightness.DEVICE)
    weights = rightness.problem.weights(TOY, 0, torch.bfloat16, rightness.DEVICE)
    cache = rightness.filled(TOY, 2, 80, torch.bfloat16, 0)
    kernel = Megakernel(TOY, weights, cache, start, start, FORM, blocks=3, advance=0)
    kernel.step()
    assert kernel.position.tolist() == STARTS
    assert kernel.token.tolist() != STARTS


# ---- hostile orders


@ON_CPU
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=MORE), pytest.param(3, marks=MORE)])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_order_of_threads_and_copies_does_not_matter(monkeypatch, seed, threads):
    monkeypatch.setenv("CUDA_CPU_SEED", str(seed))
    monkeypatch.setenv("CUDA_CPU_THREADS", threads)
    make = toy(Form(batch=2, warps=2, slice=32, stages=2, flight=1))
    rightness.prove(make, TOY, torch.bfloat16, batch=2, steps=2, start=STARTS)


# ---- what a barrier is for

#: Two are missing, because the CPU runtime goes on with all threads before it comes back to one
#: that waited: what a warp reads while another is a whole part of attention ahead (`all have read
#: it`), and what a lane reads of a stage that the warp's others have multiplied (`all lanes have
#: read`)
WAITS = {
    "grid, before attention": ("mega.cu", "grid.sync();  // queries", "//"),
    "grid, after attention": ("mega.cu", "grid.sync();  // all parts", "//"),
    "warps have left their sums": ("mega.cu", "sync_warps();  // all warps have left", "//"),
    "positions are there": ("mega.cu", "sync_warps();  // positions are there", "//"),
    "warps have found": ("mega_parts.cuh", "sync_warps();  // every warp has written", "//"),
    "lanes have put": ("mega_parts.cuh", "__syncwarp();  // all lanes have put", "//"),
    "the ring is ready": ("mega.cu", "__syncthreads();", "//"),
    "this block has told its logits": ("mega.cu", "sync_warps();  // this block has told", "//"),
    "the stage is full": ("mega_parts.cuh", "barrier_wait(&shared.ring.full[places", "//"),
    "the stage is empty": ("mega_stream.cuh", "barrier_wait(&ring.empty[", "//"),
    "the grid's counter": ("mega_grid.cuh", "while (load_acquire(arrived) < expected)", "//"),
    "threads before the counter": ("mega_grid.cuh", "sync_warps();  // this block's", "//"),
    "threads behind the counter": ("mega_grid.cuh", "sync_warps();  // thread 0 has", "//"),
}


ROW_KERNELS = "../../row_kernels/kernels"


def copy_sources(folder) -> None:
    """The megakernel's, to be changed."""
    shutil.copytree(KERNELS, folder, dirs_exist_ok=True)
    others = folder / ROW_KERNELS  # whose header the ring's file includes
    shutil.copytree(KERNELS / ROW_KERNELS, others, dirs_exist_ok=True)


def without(folder, file: str, line: str, instead: str):
    """What loads the megakernel without a line: the first that begins so."""
    copy_sources(folder)
    path = folder / file
    text = path.read_text()
    found = re.search(rf"^ *{re.escape(line)}.*$", text, re.MULTILINE)
    assert found, f"{file} has no such line: {line}"
    path.write_text(text[: found.start()] + instead + text[found.end() :])
    return lambda *flags: cuda_c.load(folder / "mega.cu", flags=flags)


BY_DAY = "the stage is full"
ANOTHER = pytest.mark.nightly("by day one that is forgotten is found")
OF_DAY_AND_NIGHT = [wait if wait == BY_DAY else pytest.param(wait, marks=ANOTHER) for wait in WAITS]


@ON_CPU
@pytest.mark.parametrize("wait", OF_DAY_AND_NIGHT)
def test_a_wait_that_is_forgotten_is_found(wait, tmp_path, monkeypatch):
    load = without(tmp_path / "language_model" / "kernels", *WAITS[wait])
    form = Form(batch=2, warps=4, slice=32, stages=3)
    make = partial(Megakernel, form=form, blocks=5, load=load)
    with pytest.raises((AssertionError, cuda_c.LaunchError)):
        for seed in range(8):
            monkeypatch.setenv("CUDA_CPU_SEED", str(seed))
            rightness.prove(make, TOY, torch.bfloat16, batch=2, steps=2, start=STARTS)


# ---- what is asked into L2 ahead of the ring

#: The copying thread notes what it asks for, and stops where a copy is of something else, or if it
#: never asked: on a processor nothing else would tell
NOTES = {
    "int ahead = 0;": "int ahead = 0, asks = 0; const unsigned char* noted[64];",
    "bulk_prefetch(asked.stage(), STAGE_BYTES);": "noted[asks++ % 64] = asked.stage();",
    "copy(copied.stage());": """
        if (ahead > 0 && noted[(asks - ahead) % 64] != copied.stage())
            __trap();
        copy(copied.stage());
        if (copied.n == PREDICT && asks == 0)
            __trap();""",
}
AHEAD_FORMS = {
    "pieces": (Form(warps=2, slice=64, pieces=2, stages=3, flight=1, ahead=8), 7, TOY),
    "chunks": (Form(8, batch=2, warps=2, slice=128, stages=3, ahead=20), 3, SMALL),
    "together": (Form(4, warps=2, slice=128, together=4, stages=8, ahead=6), 2, SMALL),
}


def noting(folder, **mistakes):
    """What loads the megakernel with those notes, and without a limit of the rate."""
    copy_sources(folder)
    path = folder / "mega_stream.cuh"
    text = path.read_text()
    for old, new in (NOTES | mistakes).items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text)
    return lambda *flags: cuda_c.load(folder / "mega.cu", flags=(*flags, "-DRATE=0"))


def prove_asking(name: str, load) -> None:
    form, blocks, config = AHEAD_FORMS[name]
    make = partial(Megakernel, form=form, blocks=blocks, load=load)
    prove = partial(rightness.prove, batch=form.batch, bits=form.bits, start=[40, 63][: form.batch])
    prove(make, config, torch.bfloat16, steps=1)


@ON_CPU
@pytest.mark.parametrize(
    "name", ["chunks", *(pytest.param(n, marks=MORE) for n in ("pieces", "together"))]
)
def test_what_is_asked_ahead_is_what_is_copied(name, tmp_path):
    prove_asking(name, noting(tmp_path / "language_model" / "kernels"))


@ON_CPU
@MORE
def test_a_stage_that_is_not_asked_is_found(tmp_path):
    mistake = {"++ahead;\n": "++ahead; asked.next();\n"}
    with pytest.raises(cuda_c.LaunchError):
        prove_asking("pieces", noting(tmp_path / "language_model" / "kernels", **mistake))


# ---- weights of fewer bits, and their order


@pytest.mark.parametrize("bits, most", [(8, 2**-4), (4, 1 / 14)])
def test_codes_are_the_nearest(bits, most):
    torch.manual_seed(0)
    weights = torch.randn(3, 16, 300)
    found = quantized.quantized(weights, bits)
    largest = weights.abs().max()
    assert (found.weights() - weights).abs().max() <= most * largest * 1.02
    again = quantized.quantized(found.weights(), bits)
    assert torch.equal(again.codes, found.codes)


def test_small_weights_have_small_steps():
    weights = torch.cat([torch.full((1, 128), 1e-3), torch.full((1, 128), 1.0)], 1)
    assert torch.allclose(quantized.quantized(weights, 4).weights(), weights, rtol=2**-8)
    zeros = quantized.quantized(torch.zeros(1, 128), 4)
    assert not zeros.weights().any()


def test_packing_loses_nothing():
    torch.manual_seed(1)
    form = Form(warps=2, slice=64, pieces=2)
    weight = torch.randn(16, 200).bfloat16()
    packed = megakernel.packed(weight, form).view(torch.bfloat16)
    assert packed.numel() == 16 * 256
    assert torch.equal(packed[packed != 0].sort().values, weight.flatten().sort().values)
    # the first lane's first 16 bytes, and those of the next row
    assert torch.equal(packed[:8], weight[0, :8])
    assert torch.equal(packed[32:40], weight[1, :8])


def test_rows_that_belong_together_are_in_one_tile():
    order = megakernel.order_of_rows(TOY, "qkv")
    half = TOY.head // 2
    assert order[:8].tolist() == [0, 1, 2, 3, half, half + 1, half + 2, half + 3]
    order = megakernel.order_of_rows(TOY, "gate_up")
    assert order[8:16].tolist() == [4, 5, 6, 7, *(TOY.hidden + i for i in range(4, 8))]
    for name in ("qkv", "gate_up", "out"):
        rows = megakernel.order_of_rows(TOY, name)
        assert torch.equal(rows.sort().values, torch.arange(TOY.shapes[name][-2]))


# ---- what fits


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="multiple of 32"):
        Form(slice=48)
    with pytest.raises(ValueError, match="multiple of 128"):
        Form(4, slice=64)
    with pytest.raises(ValueError, match="1 to 8 sequences"):
        Form(batch=9)


@pytest.mark.parametrize("config", [ONE_BILLION, EIGHT_BILLION], ids=["1b", "8b"])
def test_the_forms_have_room(config):
    for forms in FORMS.values():
        for form in forms:
            assert form.shared(config) <= megakernel.ROOM
            assert form.depth(config) >= 2 * form.together


def test_sizes_are_those_of_the_kernel():
    text = (KERNELS / "mega_parts.cuh").read_text()
    body = re.search(r"struct Sizes \{(.*?)\};", text, re.DOTALL)[1]
    body = re.sub(r"//.*", "", body)
    names = [
        name.strip()
        for line in body.split(";")
        if line.strip()
        for name in line.strip().split(" ", 1)[1].split(",")
    ]
    assert names == [name for name, _ in Sizes._fields_]


@needs_nvcc
@pytest.mark.parametrize("bits, batch", [(16, 1), pytest.param(16, 8, marks=MORE)])
def test_the_fastest_forms_compile_without_spills(bits, batch, tmp_path):
    form = megakernel.form_for(bits, batch)
    flags = form.flags(ONE_BILLION, 9 if batch == 1 else 2)
    unspilled(KERNELS / "mega.cu", tmp_path, "sm_90a", *flags)
