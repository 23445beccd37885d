"""Check the decoding rungs, then race them against PyTorch's own attention on this GPU.

    python -m course.kernels.attention.bench_decode --out results.json --budget 100

As course.kernels.attention.bench. The work: one query of 32 heads against 8 heads of keys of 128
numbers, bfloat16. L2 is flushed before every run, so that keys and values come from memory: those
of 8,192 keys, 34 MB, would fit into an H200's L2, and a model's other layers drive them out.
"""

from functools import partial

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from course.kernels.attention import decode_rightness
from course.kernels.attention.bench import BACKENDS
from course.kernels.attention.decode import DECODING, Cache
from course.kernels.attention.decode_rightness import Case, in_pages, shuffled_table
from course.kernels.fusion.bench import main
from course.kernels.fusion.racing import race, record, record_share, record_speedup, usable
from course.kernels.mnist_cnn.pytorch_modes import as_graph
from course.kernels.report import Report
from utils.occupancy import ceil_div

LENGTHS = (8192, 32768, 131072)
BATCH = 16  # of 8,192 keys each
PAGE = 64
LADDER = 32768  # the length at which all rungs are timed
FASTEST = "fastest"


def torch_attention(backend: SDPBackend, q, k, v, gqa: bool):
    """PyTorch's attention of [batch, heads, length, dim] by one of its backends."""
    with sdpa_kernel(backend):
        return functional.scaled_dot_product_attention(q, k, v, enable_gqa=gqa)


def rivals(report: Report, name: str, q, cache: Cache) -> dict:
    """PyTorch's backends that run here, each in two ways, as CUDA graphs.

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
    return {label: as_graph(run) for label, run in able.items()}


def prove_whole(q, cache: Cache) -> float:
    """The largest error of the fastest rung at full size, as a share of what roundings explain."""
    error = decode_rightness.error_of(DECODING[FASTEST], q, cache)
    assert error <= 1, f"{cache.lengths}: {error:.3g} times what roundings explain"
    return error


def ours(name: str, q, cache: Cache):
    """A function that runs a rung."""
    out = torch.empty_like(q)
    lse = torch.empty(*q.shape[::2], 1, device=q.device)
    return partial(DECODING[name].run, q, cache, out=out, lse=lse)


def paged(cache: Cache) -> Cache:
    """The same cache in shuffled pages."""
    generator = torch.Generator("cuda").manual_seed(0)
    pages = ceil_div(cache.capacity, PAGE)
    table = shuffled_table(len(cache.lengths), pages, generator)
    both = [in_pages(tensor, table, PAGE) for tensor in (cache.keys, cache.values)]
    return Cache(*both, cache.lengths, table)


def race_decode(report: Report, name: str, lengths: tuple[int, ...]) -> None:
    """The fastest rung, on a whole cache and on pages, beside PyTorch's backends."""
    q, cache = Case(lengths).inputs()
    in_shuffled = paged(cache)
    report.put("checks", name, prove_whole(q, cache))
    report.put("checks", f"{name} in pages", prove_whole(q, in_shuffled))
    runs = {"ours": ours(FASTEST, q, cache), "ours in pages": ours(FASTEST, q, in_shuffled)}
    if len(lengths) == 1 and DECODING["cluster"].able():
        runs["ours by clusters"] = ours("cluster", q, cache)
    theirs = rivals(report, name, q, cache) if len(set(lengths)) == 1 else {}
    timings = race(report, name, runs | theirs, bytes=cache.nbytes)
    record_share(f"{name}/share_of_copy", timings["ours"])
    record_share(f"{name}/paged/share_of_copy", timings["ours in pages"])
    record_speedup(f"{name}/speedup_over_best", timings, theirs)
    record(f"{name}/bytes", cache.nbytes, "B")


def race_lengths(report: Report) -> None:
    """One sequence of each length."""
    for length in LENGTHS:
        race_decode(report, f"attention/decode/{length}", (length,))
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


PARTS = {"decode": race_lengths, "decode_batch": race_batch, "decode_ladder": race_ladder}


def check_all(report: Report) -> None:
    """Every rung in small sizes; without a GPU on the CPU runtime."""
    for name, rung in DECODING.items():
        if not rung.able():
            continue
        error = report.attempt(name, decode_rightness.check, name)
        if error is not None:
            report.put("checks", name, error)


if __name__ == "__main__":
    main(PARTS, check_all)
