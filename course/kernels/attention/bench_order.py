"""Attention's tiles in other orders: what is the order's worth, and what that blocks stay?

    python -m course.kernels.attention.bench_order --out results.json --budget 60

As course.kernels.attention.bench, and the same work, at one length. Blocks of *overlap* take one
tile each, in the order in which they start; blocks of *stay* go through lists. Both are timed with
tiles in the order of launches, and as *stay* has them: of a few heads the longest first. *overlap*
also takes the longest of all heads first.
"""

import shutil
import tempfile
from functools import partial
from pathlib import Path

import torch

from course.kernels.attention import hopper, reference
from course.kernels.attention.bench import LADDER, case_of, flops_of
from course.kernels.attention.problem import problem_of, stream
from course.kernels.attention.reference import Case
from course.kernels.bench.command import main
from course.kernels.bench.races import race
from course.kernels.bench.report import Report
from utils import cuda_c
from utils.occupancy import ceil_div

#: A line of overlap.cu, and what stands in its place
LAUNCHED = "Tile tile = {(int)blockIdx.z, (int)blockIdx.y, (int)blockIdx.x * QUERIES, 0};"
LONGEST = (
    "Tile tile = {(int)blockIdx.y, (int)blockIdx.x,"
    " ((int)gridDim.z - 1 - (int)blockIdx.z) * QUERIES, 0};"
)
GROUPED = """
    int tiles = (p.queries + QUERIES - 1) / QUERIES, group = tiles * TOGETHER;
    int within = (int)blockIdx.x % group, place = (int)blockIdx.x / group * TOGETHER;
    place += within % TOGETHER;
    Tile tile = {place / p.heads, place % p.heads, (tiles - 1 - within / TOGETHER) * QUERIES, 0};
"""


def shape_of(case: Case) -> tuple:
    """As hopper.order takes it."""
    return case.batch, case.heads, case.queries, case.queries, 1, case.dim, case.causal


def overlaps(case: Case) -> dict:
    """{form: run(maps, lse, problem)}: a block for each tile, in three orders."""
    form = hopper.form_for(case.dim, "overlap")
    source = (hopper.KERNELS / "overlap.cu").read_text()
    assert source.count(LAUNCHED) == 1
    tiles, places = ceil_div(case.queries, hopper.QUERIES), case.heads * case.batch
    together = min(places, hopper.heads_together(case.queries, case.dim))
    assert places % together == 0
    grids = {
        "overlap": (LAUNCHED, (tiles, case.heads, case.batch)),
        "overlap_longest": (LONGEST, (case.heads, case.batch, tiles)),
        "overlap_grouped": (GROUPED, (tiles * places, 1, 1)),
    }
    runs = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("attention", "matmul"):  # files include others by their places
            own = hopper.KERNELS.parents[1] / name / "kernels"
            shutil.copytree(own, Path(folder, name, "kernels"))
        for name, (line, grid) in grids.items():
            path = Path(folder, "attention", "kernels", f"{name}.cu")
            path.write_text(source.replace(LAUNCHED, line))
            kernel = cuda_c.load(path, flags=(*form.flags, f"-DTOGETHER={together}")).attention
            runs[name] = partial(_one_tile_each, kernel, grid, form.shared)
    return runs


def _one_tile_each(kernel, grid, shared, maps, lse, problem):
    kernel[grid, hopper.THREADS, shared, stream()](*maps, lse, problem)


def stays(case: Case, device) -> dict:
    """{form: run(maps, lse, problem)}: a list of tiles for each SM, dealt in two orders."""
    form = hopper.form_for(case.dim)
    own = hopper.order(shape_of(case), form.keys)
    orders = {"stay_launched": sorted(own, key=lambda tile: tile[1]), "stay": own}
    return {
        name: partial(_lists, hopper.kernel(form), form.shared, *hopper.assign(order, device))
        for name, order in orders.items()
    }


def _lists(kernel, shared, starts, tiles, maps, lse, problem):
    launch = kernel[len(starts) - 1, hopper.THREADS, shared, stream()]
    launch(*maps, lse, starts, tiles, problem, None, None)


def forms_of(case: Case) -> tuple[dict, dict, tuple]:
    """({form: run()}, {form: its result}, (q, k, v)): each has a result of its own."""
    q, k, v = reference.inputs(case)
    problem, form = problem_of(q, k, case.causal), hopper.form_for(case.dim)
    runs, results = {}, {}
    for name, run in (overlaps(case) | stays(case, q.device)).items():
        out = torch.full_like(q, torch.nan)
        lse = torch.empty(case.batch, case.heads, case.queries, device=q.device)
        tensors = (out, hopper.ROWS), (q, hopper.ROWS), (k, form.keys), (v, form.keys)
        maps = [hopper.rows_of(x, rows) for x, rows in tensors]
        runs[name], results[name] = partial(run, maps, lse, problem), out
    return runs, results, (q, k, v)


def largest_difference(case: Case) -> float:
    """Of any form's result from the exact one, as a share of the largest value."""
    runs, results, (q, k, v) = forms_of(case)
    for run in runs.values():
        run()
    exact = reference.attention(q, k, v, case.causal)[0].to(q.device).double()
    return max(
        (x.double() - exact).abs().max() / exact.abs().max() for x in results.values()
    ).item()


def check_all(report: Report) -> None:
    """Every form in a small size; without a GPU on the CPU runtime."""
    for causal in (False, True):
        apart = largest_difference(Case(1, 512, heads=4, causal=causal))
        assert apart <= 2**-6, f"causal {causal}: {apart:.2g} apart"
        report.put("checks", f"order, causal {causal}", apart)


def race_order(report: Report) -> None:
    """All forms in turn, without a mask and with one."""
    for causal in (False, True):
        case = case_of(LADDER, causal)
        runs, _, _ = forms_of(case)
        kind = "order_causal" if causal else "order"
        race(report, f"attention/{kind}/{LADDER}", runs, "stay", flops=flops_of(case))
        del runs
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main(__doc__, {"order": race_order}, check_all)
