"""Check the decoding rungs, then race them against PyTorch's own attention on this GPU.

    python -m course.kernels.attention.bench_decode --out results.json --budget 100

As course.kernels.attention.bench. The work: one query of 32 heads against 8 heads of keys of 128
numbers, bfloat16. Three clocks, the same for all rivals:

decode         one launch, after a flush of L2. The flush leaves L2 full of lines that were written,
               and the launch is charged for writing them back.
decode_clean   one launch, after a flush that ends by reading: L2 has nothing of the cache, and
               nothing to write back.
decode_layers  a token's way through a model: the caches of several layers in turn as one CUDA
               graph, together far larger than L2. What lies in L2 was read, as in a model.

decode_read has what merely reading the cache takes by the first two, and copying as many bytes.
"""

from dataclasses import replace
from functools import partial

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from course.kernels.attention import decode_rightness
from course.kernels.attention.bench import BACKENDS
from course.kernels.attention.classic import module
from course.kernels.attention.decode import DECODING, Cache, Form, attention, form_for
from course.kernels.attention.decode_rightness import Case, in_pages, shuffled_table
from course.kernels.attention.problem import flat, stream
from course.kernels.bench.command import main
from course.kernels.bench.races import race, record_share, record_speedup, usable
from course.kernels.bench.report import Report
from course.kernels.mnist_cnn.pytorch_modes import as_graph
from utils.occupancy import ceil_div

LENGTHS = (8192, 32768, 131072)
BATCH = 16  # of 8,192 keys each
PAGE = 64
LAYERS_BYTES = 1 << 30  # of the caches of all layers together, at least: 20 times an H200's L2
FEWEST_LAYERS = 4
LADDER = 32768  # the length at which all rungs are timed
GROUP_OF = 4  # heads of queries that share a head of keys
FASTEST = "fastest"
READ_BLOCKS = 528  # 4 on each of an H200's SMs: as fast as any number that was tried
PIECE = 16  # bytes


def torch_attention(backend: SDPBackend, q, k, v, gqa: bool):
    """PyTorch's attention of [batch, heads, length, dim] by one of its backends."""
    with sdpa_kernel(backend):
        return functional.scaled_dot_product_attention(q, k, v, enable_gqa=gqa)


def rivals(report: Report, name: str, q, cache: Cache, captured: bool = True) -> dict:
    """PyTorch's backends that run here, each in two ways, as CUDA graphs if `captured`.

    gqa: it is told of the groups. folded: a group's heads stand as queries of one head, which is
    the same without a mask, and lets every backend read keys once for a group.
    """
    batch, _, heads, dim = q.shape
    key_heads = cache.keys.shape[2]
    k, v = cache.keys.transpose(1, 2), cache.values.transpose(1, 2)
    told = q.transpose(1, 2)
    folded = q.reshape(batch, key_heads, heads // key_heads, dim)
    runs = {}
    for label, backend in BACKENDS.items():
        runs[f"{label} gqa"] = partial(torch_attention, backend, told, k, v, True)
        runs[f"{label} folded"] = partial(torch_attention, backend, folded, k, v, False)
    runs["math folded"] = partial(torch_attention, SDPBackend.MATH, folded, k, v, False)
    able = usable(report, name, runs)
    return {label: as_graph(run) for label, run in able.items()} if captured else able


def prove_whole(q, cache: Cache) -> float:
    """The largest error of the fastest rung at full size, as a share of what roundings explain."""
    error = decode_rightness.error_of(DECODING[FASTEST], q, cache)
    assert error <= 1, f"{cache.lengths}: {error:.3g} times what roundings explain"
    return error


def ours(name: str, q, cache: Cache):
    """A function that runs a rung."""
    return into_own(DECODING[name].run, q, cache)


def in_form(form: Form, q, cache: Cache):
    """A function that runs one form of the kernels."""
    return into_own(partial(attention, form=form), q, cache)


def into_own(run, q, cache: Cache):
    """The same with results of its own, made once."""
    out = torch.empty_like(q)
    lse = torch.empty(*q.shape[::2], 1, device=q.device)
    return partial(run, q, cache, out=out, lse=lse)


def paged(cache: Cache) -> Cache:
    """The same cache in shuffled pages."""
    generator = torch.Generator("cuda").manual_seed(0)
    pages = ceil_div(cache.capacity, PAGE)
    table = shuffled_table(len(cache.lengths), pages, generator)
    both = [in_pages(tensor, table, PAGE) for tensor in (cache.keys, cache.values)]
    return Cache(*both, cache.lengths, table)


def race_decode(
    report: Report, name: str, lengths: tuple[int, ...], *, clean: bool = False
) -> None:
    """The fastest rung, on a whole cache and on pages, beside PyTorch's backends.

    clean: as for `compare`.
    """
    q, cache = Case(lengths).inputs()
    in_shuffled = paged(cache)
    report.put("checks", name, prove_whole(q, cache))
    report.put("checks", f"{name} in pages", prove_whole(q, in_shuffled))
    runs = {"ours": ours(FASTEST, q, cache), "ours in pages": ours(FASTEST, q, in_shuffled)}
    theirs = rivals(report, name, q, cache) if len(set(lengths)) == 1 else {}
    timings = race(report, name, runs | theirs, bytes=cache.nbytes, clean=clean)
    record_share(report, f"{name}/share_of_copy", timings["ours"])
    record_share(report, f"{name}/paged/share_of_copy", timings["ours in pages"])
    record_speedup(report, f"{name}/speedup_over_best", timings, theirs)
    report.record(f"{name}/bytes", cache.nbytes, "B")


def race_lengths(report: Report) -> None:
    """One sequence of each length."""
    for length in LENGTHS:
        race_decode(report, f"attention/decode/{length}", (length,))
        torch.cuda.empty_cache()


def race_clean(report: Report) -> None:
    """The same, with nothing in L2 that has to be written back."""
    for length in LENGTHS:
        race_decode(report, f"attention/decode_clean/{length}", (length,), clean=True)
        torch.cuda.empty_cache()


def reader(data: torch.Tensor, passing: bool = False, blocks: int = READ_BLOCKS) -> tuple:
    """(a function that reads a tensor once, the words that it leaves, whose xor is the data's).

    passing: as of a Form.
    """
    sums = torch.zeros(blocks, dtype=torch.int32, device=data.device).view(torch.uint32)
    words = flat(data).view(torch.uint32)
    count = data.nbytes // PIECE
    launch = module("decode_read", f"-DPASSING={int(passing)}").read[blocks, 256, 0, stream()]
    return partial(launch, sums, words, count), sums


def xor_of(words: torch.Tensor) -> int:
    """The exclusive or of all 4-byte words."""
    words = words.flatten().view(torch.int32)
    while len(words) > 1:
        half = len(words) // 2
        rest = words[2 * half :]
        words = torch.cat([words[:half] ^ words[half : 2 * half], rest])
    return words.item()


def race_read(report: Report) -> None:
    """What decoding cannot do without, by both flushes: a bare read of its bytes; and a copy."""
    _, cache = Case((LADDER,)).inputs()
    data = torch.randint(
        0, 1 << 31, (cache.nbytes // 4,), dtype=torch.int32, device=cache.keys.device
    )
    half, target = data.chunk(2)[0], torch.empty_like(data.chunk(2)[0])
    readers = {"read": reader(data), "read, let go": reader(data, passing=True)}
    for label, (run, sums) in readers.items():
        run()
        assert xor_of(sums) == xor_of(data), f"{label} did not read all"
    runs = {label: run for label, (run, _) in readers.items()}
    runs["copy"] = partial(target.copy_, half)  # reads half as much, and writes it
    for clock, clean in {"once": False, "clean": True}.items():
        name = f"attention/decode_read/{clock}/{LADDER}"
        race(report, name, runs, "read", bytes=cache.nbytes, clean=clean)


def in_turn(runs: list) -> None:
    """One function after the other."""
    for run in runs:
        run()


def layers_of(length: int) -> list[tuple]:
    """(q, cache) of layers with one sequence of a length, together far larger than L2."""
    first = Case((length,)).inputs()
    count = max(FEWEST_LAYERS, ceil_div(LAYERS_BYTES, first[1].nbytes))
    return [first, *(Case((length,)).inputs(seed) for seed in range(1, count))]


def bytes_of(layers: list[tuple]) -> int:
    """Of all their caches."""
    return sum(cache.nbytes for _, cache in layers)


def rivals_in_layers(report: Report, name: str, layers: list) -> dict:
    """As `rivals`: each backend through all layers, as one CUDA graph."""
    of_layers = [rivals(report, name, *layer, captured=False) for layer in layers]
    able = set.intersection(*(set(runs) for runs in of_layers))
    return {
        label: as_graph(partial(in_turn, [runs[label] for runs in of_layers]))
        for label in of_layers[0]
        if label in able
    }


def race_layers_of(report: Report, length: int) -> None:
    """One sequence's token through layers, whose caches together are far larger than L2."""
    name = f"attention/decode_layers/{length}"
    layers = layers_of(length)
    report.put("checks", name, max(prove_whole(*layer) for layer in layers[:2]))
    mine = as_graph(partial(in_turn, [ours(FASTEST, *layer) for layer in layers]))
    theirs = rivals_in_layers(report, name, layers)
    timings = race(report, name, {"ours": mine} | theirs, bytes=bytes_of(layers))
    report.record(f"{name}/layers", len(layers))
    record_share(report, f"{name}/share_of_copy", timings["ours"])
    record_speedup(report, f"{name}/speedup_over_best", timings, theirs)


def race_layers(report: Report) -> None:
    """Each length, through layers."""
    for length in LENGTHS:
        race_layers_of(report, length)
        torch.cuda.empty_cache()


def race_batch(report: Report) -> None:
    """A batch of one length, and one of lengths that differ."""
    race_decode(report, f"attention/decode_batch_{BATCH}/{LENGTHS[0]}", (LENGTHS[0],) * BATCH)
    torch.cuda.empty_cache()
    mixed = tuple(LENGTHS[0] * 2 * i // BATCH + 1 for i in range(BATCH))  # 1 to 15,361
    race_decode(report, f"attention/decode_mixed_{BATCH}/{max(mixed)}", mixed)


def race_ladder(report: Report) -> None:
    """Every rung at one length, in turn."""
    q, cache = Case((LADDER,)).inputs()
    able = [name for name, rung in DECODING.items() if rung.able() and name != FASTEST]
    runs = {name: ours(name, q, cache) for name in able}
    race(report, f"attention/decode_ladder/{LADDER}", runs, "group", bytes=cache.nbytes)


def race_hint(report: Report) -> None:
    """A hint to L2, by all clocks: does a kernel gain whose loads let their lines leave first?"""
    layers = layers_of(LADDER)
    form = form_for(layers[0][1], GROUP_OF)
    forms = {"kept": replace(form, passing=False), "let go": replace(form, passing=True)}
    one = layers[:1]
    for clock, taken in {"once": one, "clean": one, "layers": layers}.items():
        runs = {}
        for label, form in forms.items():
            each = [in_form(form, *layer) for layer in taken]
            runs[label] = as_graph(partial(in_turn, each))
        name = f"attention/decode_hint/{clock}/{LADDER}"
        timings = race(report, name, runs, bytes=bytes_of(taken), clean=clock == "clean")
        record_speedup(report, f"{name}/gained", timings, ["kept"], "let go")


PARTS = {
    "decode": race_lengths,
    "decode_clean": race_clean,
    "decode_read": race_read,
    "decode_layers": race_layers,
    "decode_batch": race_batch,
    "decode_ladder": race_ladder,
    "decode_hint": race_hint,
}


def check_all(report: Report) -> None:
    """Every rung in small sizes; without a GPU on the CPU runtime."""
    for name, rung in DECODING.items():
        if not rung.able():
            continue
        error = report.attempt(name, decode_rightness.check, name)
        if error is not None:
            report.put("checks", name, error)


if __name__ == "__main__":
    main(__doc__, PARTS, check_all)
