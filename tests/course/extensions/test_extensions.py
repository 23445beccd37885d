"""The routes have every feature, what is broken is noticed, the operators and the package work."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import json
import re
import sys
from pathlib import Path

import pytest
import torch

from course.extensions import (
    bench,
    contract,
    convolution,
    features,
    fused,
    micrograd,
    packaging,
    routing,
    sources,
    table,
    versions,
)
from course.extensions.streams import ORDERS, Model
from utils import pick

DEVICE = pick(gpu="cuda", cpu="cpu")
#: What PyTorch itself does not do for an operator whose gradient is a rule
BEYOND_PYTORCH = {"func_grad"}
AVAILABLE = [name for name, route in routing.ROUTES_BY_NAME.items() if route.available]


# ---- routes


IN_CPP = "inline", "packaged"
BUILT = pytest.mark.nightly("by day the chapter builds these C++ operators and tries them")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[BUILT] if name in IN_CPP else []) for name in AVAILABLE],
)
def test_a_route_has_every_feature(name):
    operators = getattr(torch.ops, routing.take(name).namespace)
    lacking = {}
    for feature in features.FEATURES:
        outcome = features.attempt(feature, operators, DEVICE)
        if outcome not in (features.WORKS, features.UNKNOWN):
            lacking[feature] = outcome
    on_gpu = {"cpu_too"} if DEVICE == "cuda" else set()
    assert set(lacking) <= BEYOND_PYTORCH | on_gpu, lacking


def test_at_least_five_routes_need_nothing_to_be_installed():
    assert len(AVAILABLE) >= 5


@pytest.mark.parametrize(
    "name, noticed",
    [
        ("ignores_strides", "strides"),
        ("loses_memory_format", "channels_last"),
        ("answers_in_float32", "dtypes"),
        ("takes_integers", "clear_errors"),
        ("forgets_empty", "empty"),
        ("keeps_a_buffer", "fresh_results"),
    ],
)
def test_what_is_broken_is_noticed(name, noticed):
    assert noticed in contract.caught_by(contract.BREAKS[name])


def test_what_is_right_is_not_complained_of():
    assert contract.caught_by(contract.right) == {}


def test_a_wrapper_of_a_learner_is_tried_too():
    def forward(x, a, b, c):
        return contract.right(x.contiguous(), a, b, c)

    assert list(contract.caught_by(forward)) == ["channels_last"]


def test_of_a_table_the_rows_that_differ():
    rows = {"values": features.WORKS, "vmap": "no: wrong", "stream": features.UNKNOWN}
    rows = {name: {"a": outcome} for name, outcome in rows.items()}
    differing = table.Table("Tried", ("a",), rows).differing()
    assert list(differing.rows) == ["vmap"]
    assert differing.title == "Tried: 1 of 3 rows have a ✗"


def test_a_table_marks_what_fails():
    rows = {"values": {"a": features.WORKS, "b": "no: wrong"}, "stream": {"a": features.UNKNOWN}}
    shown = table.Table("title", ("a", "b"), rows)
    assert [shown.sign("values", name) for name in "ab"] == ["✓", "✗"]
    assert shown.sign("stream", "b") == "·"
    assert "✗" in repr(shown) and "title" in shown._repr_html_()


def test_a_route_that_is_not_built_has_no_feature(monkeypatch):
    def fail(name):
        raise RuntimeError("no compiler here")

    monkeypatch.setattr(routing, "take", fail)
    shown = table.tried_here(["inline"])
    assert {shown.sign(feature, "load_inline") for feature in shown.rows} == {table.NO}
    assert "no compiler here" in shown.rows["values"]["load_inline"]


def test_what_is_recorded_of_package_and_convolution_is_said(monkeypatch):
    said = {"gpu": "a GPU", "date": "2026-11-22T13:00:00Z", "versions": {"torch": "2.11.0"}}
    values = {
        "extensions/package/tests_passed": 58.0,
        "extensions/conv3x3/any_shape/speedup_over_torch": 0.2,
        "extensions/conv3x3/any_shape/time": 0.5,
        "extensions/conv3x3/torch/time": 0.1,
    }
    recorded = {name: {"value": value, **said} for name, value in values.items()}
    monkeypatch.setattr(table.results, "find", recorded.get)
    assert "PyTorch 2.11.0: 58 tests passed (a GPU, 2026-11-22)" in table.own_version()
    special, general = table.convolution().splitlines()
    assert "this shape: nothing is recorded yet" in special
    assert "any shape: 0.500 ms, PyTorch 0.100 ms: 0.20 times" in general

    monkeypatch.setattr(table.results, "find", lambda name: None)
    assert "not recorded" in table.own_version()
    assert table.convolution().count("nothing is recorded yet") == 2


# ---- streams


@pytest.mark.parametrize("order", ORDERS)
def test_one_stream_is_always_right(order):
    gpu = Model(order)
    x = gpu.full(3.0)
    assert (x * x + x).item() == 12


def side_by_side(gpu, waits, records):
    """2 · 7 on another stream, with the memory of 7 freed early."""
    side, b = gpu.Stream(), gpu.full(7.0)
    if waits:
        side.wait_stream(gpu.current_stream())
    with gpu.stream(side):
        double = gpu.launch(lambda x: 2 * x, b)
    if records:
        b.record_stream(side)
    del b
    other = gpu.full(100.0)
    got = double.item()
    del other
    return got


@pytest.mark.parametrize("order", ORDERS)
def test_what_waits_and_records_is_right_in_any_order(order):
    for seed in range(5):
        assert side_by_side(Model(order, seed), waits=True, records=True) == 14


@pytest.mark.parametrize("waits, records", [(True, False), (False, True)])
def test_what_is_forgotten_shows_in_some_order(waits, records):
    seen = {side_by_side(Model(order), waits, records) for order in ORDERS}
    assert seen != {14}


# ---- our own autograd


def test_micrograd_agrees_with_pytorch():
    torch.manual_seed(0)
    leaves = [torch.randn(shape, device=DEVICE) for shape in ((5, 3), (3, 4), (5, 4))]
    a, b, c = map(micrograd.Value, leaves)
    product = (a @ b + c).relu()
    (product * product * c).mean().backward()
    theirs = [leaf.clone().requires_grad_() for leaf in leaves]
    right = (theirs[0] @ theirs[1] + theirs[2]).relu()
    (right * right * theirs[2]).mean().backward()
    for ours, leaf in zip((a, b, c), theirs, strict=True):
        torch.testing.assert_close(ours.grad, leaf.grad)


def test_micrograd_forgets_no_use():
    x = micrograd.Value(torch.tensor([3.0], device=DEVICE))
    (x * x + x).mean().backward()
    assert x.grad.item() == 7


# ---- the fused operator


@pytest.mark.parametrize("shape", [(1, 8), (7, 33), (2, 3, 264), (0, 8)])
@pytest.mark.parametrize("dtype", fused.NUMBERS)
def test_fused_values_and_gradients(shape, dtype):
    if 0 not in shape:
        bench.check_fused_at(shape, dtype)
        return
    x = torch.zeros(shape, dtype=dtype, device=DEVICE)
    assert fused.bias_gelu_dropout(x, x.new_zeros(shape[-1])).shape == shape


@pytest.mark.parametrize("columns", [96, 97])  # eight columns a thread, and one
def test_fused_backward_draws_the_same_mask(columns):
    x = torch.ones(40, columns, device=DEVICE, requires_grad=True)
    bias = torch.zeros(columns, device=DEVICE, requires_grad=True)
    y = fused.bias_gelu_dropout(x, bias, 0.25)
    dx, dbias = torch.autograd.grad(y.sum(), (x, bias))
    assert torch.equal(y == 0, dx == 0)
    assert 0.2 < (y == 0).float().mean() < 0.3
    torch.testing.assert_close(dbias, dx.sum(0))


def test_fused_mask_does_not_depend_on_how_threads_share_the_columns():
    seed = torch.tensor([11], device=DEVICE)
    x = torch.ones(3, 64, device=DEVICE)
    bias = torch.zeros(65, device=DEVICE)
    operator = torch.ops.course_fused.bias_gelu_dropout
    wide, narrow = operator(x, bias[:64], seed, 0.5), operator(x, bias[1:], seed, 0.5)
    assert torch.equal(wide, narrow)


def test_fused_mask_repeats_with_pytorchs_seed():
    x, bias = torch.ones(9, 50, device=DEVICE), torch.zeros(50, device=DEVICE)
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(fused.bias_gelu_dropout(x, bias, 0.5))
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


@pytest.mark.parametrize("p, share", [(0.0, 0.0), (1.0, 1.0)])
def test_fused_drops_nothing_or_all(p, share):
    y = fused.bias_gelu_dropout(torch.ones(5, 9, device=DEVICE), torch.zeros(9, device=DEVICE), p)
    assert (y == 0).float().mean() == share


def test_fused_says_what_it_cannot_do():
    x = torch.ones(3, 8, device=DEVICE)
    with pytest.raises(ValueError, match="last axis"):
        fused.bias_gelu_dropout(x, x[0, :7])
    with pytest.raises(TypeError, match="float32"):
        fused.bias_gelu_dropout(x.int(), x[0])
    with pytest.raises(ValueError, match="probability"):
        fused.bias_gelu_dropout(x, x[0], 1.5)


# ---- the convolution


@pytest.mark.parametrize("image, weights", [((8, 7, 6), (16, 8)), ((32, 14, 14), (64, 32))])
@pytest.mark.parametrize("count", [1, 3])
def test_convolution_and_its_gradients(image, weights, count):
    number = convolution.implicit.sixteen_bits()
    x = torch.randn(count, *image, device=DEVICE).to(number).requires_grad_()
    w = torch.randn(*weights, 3, 3, device=DEVICE) / (3 * weights[1] ** 0.5)
    w = w.to(number).requires_grad_()
    digits = number == torch.bfloat16 and image == (32, 14, 14)
    assert convolution.is_of_the_digits(x, w) == digits
    y = convolution.conv3x3(x, w)
    dy = torch.randn_like(y)
    wide = [tensor.detach().double().requires_grad_() for tensor in (x, w)]
    exact = torch.nn.functional.conv2d(*wide, padding=1)
    torch.testing.assert_close(y, exact.to(number))
    right = torch.autograd.grad(exact, wide, dy.double())
    for ours, theirs in zip(torch.autograd.grad(y, (x, w), dy), right, strict=True):
        assert (ours - theirs).norm() <= 2**-8 * theirs.norm()


@pytest.mark.parametrize("image, weights", [((8, 5, 5), (8, 8)), ((32, 14, 14), (64, 32))])
def test_convolution_is_an_operator(image, weights):
    number = convolution.implicit.sixteen_bits()
    x = torch.randn(1, *image, device=DEVICE).to(number).requires_grad_()
    w = torch.randn(*weights, 3, 3, device=DEVICE).to(number).requires_grad_()
    torch.library.opcheck(torch.ops.course_convolution.conv3x3.default, (x, w))
    with pytest.raises(ValueError, match="multiples of 8"):
        convolution.conv3x3(x[:, :4], w[:, :4])


# ---- the package and the bench


@pytest.mark.nightly("the chapter installs the package and runs all of its tests")
def test_the_package_installs_and_its_tests_pass_and_can_fail(tmp_path):
    wheel = packaging.wheel()  # built once for this test and for the route of its name
    assert "-cp311-abi3-" in wheel.name
    python = packaging.fresh_environment(tmp_path / "environment")
    packaging.install(wheel, python)
    assert "passed" in packaging.test(python, only="gradients")  # the chapter runs them all
    (rules,) = tmp_path.glob("environment/lib/*/site-packages/polynomial_op/rules.py")
    text = rules.read_text()
    rules.write_text(text.replace("2 * ctx.a * ddx", "ctx.a * ddx"))
    assert rules.read_text() != text
    with pytest.raises(RuntimeError, match="test_gradients"):
        packaging.test(python, only="gradients")


def test_what_a_package_says_to_its_user_is_its_last_error(tmp_path, capsys):
    (tmp_path / "mine.py").write_text("raise NotImplementedError('not on a CPU. At all')\n")
    packaging.try_in(tmp_path, "print('begun')\nimport mine")
    assert capsys.readouterr().out == "begun\n✗ NotImplementedError: not on a CPU\n"


def test_a_learners_package_is_installed_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(packaging, "ROOT", tmp_path)
    monkeypatch.setattr(packaging, "SITE", tmp_path / "site")
    source = tmp_path / "source"
    source.mkdir()
    (source / "mine.py").write_text("print(3)\n")
    (source / "pyproject.toml").write_text(
        '[project]\nname = "mine"\nversion = "1"\n[tool.setuptools]\npy-modules = ["mine"]\n'
    )
    packaging.try_in(packaging.install_here(str(source)), "import mine")
    command, said = capsys.readouterr().out.splitlines()
    assert command.startswith("$ pip install -q --no-deps") and said == "3"


def test_what_is_kept_of_other_versions_is_said(tmp_path, monkeypatch):
    """With this environment's PyTorch as the other one; that the tests run is seen above."""
    monkeypatch.setattr(versions, "environment", lambda version, folder: Path(sys.executable))
    monkeypatch.setattr(packaging, "wheel", lambda: Path("polynomial_op-1.whl"))
    monkeypatch.setattr(packaging, "install", lambda wheel, python: None)
    monkeypatch.setattr(packaging, "test", lambda python: "29 passed in 1.00s")
    monkeypatch.setattr(versions, "REPORT", tmp_path / "report.json")
    monkeypatch.setattr(sys, "argv", ["versions", "2.10.0", "--keep", str(tmp_path)])
    versions.main()
    first, second = versions.text().splitlines()
    assert f"built with PyTorch {torch.__version__}" in first
    assert torch.__version__ in second and second.endswith("29 passed")


def test_the_kept_wheel_passed_with_the_oldest_pytorch_and_a_newer_one():
    kept = json.loads(versions.REPORT.read_text())
    assert kept["wheel"].startswith("polynomial_op-")
    assert all(re.match(r"\d+ passed", one["said"]) for one in kept["tried"])
    tried = [tuple(map(int, one["torch"].split("+")[0].split(".")[:2])) for one in kept["tried"]]
    setup = (sources.PACKAGE / "setup.py").read_text()
    oldest = re.search(r"TORCH_TARGET_VERSION=0x(\w{2})(\w{2})", setup)
    built_with = tuple(map(int, kept["built_with"].split(".")[:2]))
    assert min(tried) == tuple(int(part, 16) for part in oldest.groups())
    assert max(tried) > built_with


def test_every_source_that_is_shown_exists():
    files = [path for route in routing.ROUTES_BY_NAME.values() for path in route.files]
    for path in (*files, sources.FUSED, sources.ARRAYS, sources.KERNELS):
        assert path.is_file(), path
    assert all(route.lines > 20 for route in routing.ROUTES_BY_NAME.values())
