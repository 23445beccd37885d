"""The judge's parts that need no candidate: bounds, what a text says, libraries, the clock."""

import builtins
import importlib
import inspect
import statistics
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from course.judge import (
    Bound,
    Demands,
    desk,
    elementwise,
    fast,
    handed_in,
    library,
    sandbox,
    sum_of_products,
    watching,
    words,
)
from course.judge.cases import CLOSE, FEWER, HOSTILE, SORTED
from course.judge.errors import UNIT_ROUNDOFF
from course.judge.reading import facts_of
from course.judge.sandbox import Array, Forged, notes_of, unpacked
from course.judge.timed import Host, samples
from utils.check import rounding_bound


def product(a, b):
    return a @ b


def off(bound, a, b, got):
    """The largest error of a product, in units of its bound."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return np.max(np.abs(got - a @ b) / bound.of(a @ b, (a, b), product))


@pytest.mark.parametrize("n", [1, 64, 512])
def test_a_bound_holds_for_its_type_and_not_for_the_next_narrower_one(n):
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(8, n)).astype("f"), rng.normal(size=(n, 8)).astype("f")
    assert off(sum_of_products(n), a, b, a @ b) < 1
    half = a.astype("e").astype("f") @ b.astype("e").astype("f")
    assert off(sum_of_products(n), a, b, half) > 1
    assert off(sum_of_products(n, inputs="tf32"), a, b, half) < 1


MANY = 1_000_000
#: A million terms of which some or all are equal
ALIKE = {
    "all": np.full(MANY, 0.1, "f"),
    "half of them": np.where(np.arange(MANY) % 2, 0.1, np.random.default_rng(1).random(MANY)),
    "three values": np.random.default_rng(2).choice([0.1, 0.2, 0.7], MANY),
}


@pytest.mark.parametrize("what", ALIKE)
def test_a_sum_of_equal_terms_may_be_off_by_all_of_its_roundings(what):
    terms = ALIKE[what].astype("f")
    exact = terms.sum(dtype=np.float64)
    room = Bound(np.size, magnitude="itself").of(exact, (terms.astype(np.float64),), None)
    one_after_the_other = np.add.accumulate(terms)[-1]
    at_random = rounding_bound(MANY, UNIT_ROUNDOFF["float32"]) * exact
    assert at_random < abs(one_after_the_other - exact) < room
    assert abs(terms[: MANY * 9 // 10].sum(dtype=np.float64) - exact) > room
    assert abs(np.add.accumulate(terms[:40_000].astype("e"))[-1] * 25 - exact) > room


def test_a_sum_of_other_terms_may_be_off_by_as_little_as_before():
    rng = np.random.default_rng(3)
    unit = rounding_bound(MANY, UNIT_ROUNDOFF["float32"])
    terms = rng.random(MANY)
    assert Bound(MANY, magnitude="itself").relative((terms,)) < 1.1 * unit
    product, least = sum_of_products(1000), rounding_bound(1000, UNIT_ROUNDOFF["float32"])
    a, b = np.maximum(rng.normal(size=(30, 1000)), 0), torch.from_numpy(rng.normal(size=(1000, 9)))
    assert product.relative((a, b)) < 1.1 * least
    assert product.relative((np.sign(a), b)) > 3 * least


def test_a_bound_of_terms_that_cancel_is_as_wide_as_they_are_and_one_of_the_result_is_not():
    a, b = np.array([[1e4, 1, -1e4]], "f"), np.ones((3, 1), "f")
    wide, narrow = sum_of_products(3), elementwise(3)
    assert wide.of(a @ b, (a, b), product) > 1e-3 > 100 * narrow.of(a @ b, (a, b), product)


def test_a_bound_is_as_wide_for_tensors_as_for_arrays():
    a, b = (np.random.default_rng(n).normal(size=(40, 40)) for n in (1, 2))
    bound, tensors = sum_of_products(40), (torch.from_numpy(a), torch.from_numpy(b))
    assert np.allclose(bound.of(a @ b, tensors, product), bound.of(a @ b, (a, b), product))


def test_bytes_of_a_tensor_that_is_negated_later_are_those_of_its_values():
    values = torch.arange(5.0)
    assert desk.bytes_of(torch._neg_view(values)) == (-values).numpy().tobytes()


CHANGES = {
    "replaced, and `all` says that all is well": (builtins, "all", lambda those: True),
    "another body": (statistics.mean, "__code__", (lambda data: 0).__code__),
    "another default where there was none": (statistics.mean, "__defaults__", ((),)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_function_that_is_another_than_before_is_seen(what, monkeypatch):
    functions = watching.Functions()
    assert functions.are_the_same()
    with monkeypatch.context() as changed:
        changed.setattr(*CHANGES[what])
        same, now = functions.are_the_same(), functions.identities()
    assert not same
    assert sum(functions.before[one] != now.get(one) for one in functions.before) == 1
    assert functions.are_the_same()


def test_no_bound_lets_zeros_pass():
    expected = np.full(4, 2.0)
    assert np.all(Bound(1 << 40, "float16").of(expected, (expected,), None) < expected)


SAYS = {
    "import gc\ngc.get_objects()": {"looks_around"},
    "from gc import get_objects as g": {"looks_around"},
    "import gc\ngc.collect()": set(),
    "import torch\ntorch.cuda.synchronize = print": {"patched"},
    "import numpy as np\nnp.random.seed": set(),
    "import torch\ngetattr(torch, 'soft' + 'max')": {"hides_code"},
    "import operator\noperator.attrgetter('__globals__')(print)": {"looks_around"},
    "from torch.utils._python_dispatch import _disable_current_modes": {"looks_around"},
    "try:\n    x = f()\nexcept Exception:\n    x = g()": {"falls_back"},
    "try:\n    f()\nexcept Exception as e:\n    print(e)": set(),
    "import os\nos.environ['TORCH_CUDA_ARCH_LIST'] = '9.0'": set(),
    "import importlib.util\nimportlib.util.find_spec('triton')": set(),
    "import logging\nlogging.getLogger(__name__)": set(),
    "f = 1 if __name__ == 'submission' else 0": {"knows_the_test"},
    "try:\n    f()\nexcept ValueError:\n    g()": set(),
    "try:\n    f()\nexcept:\n    raise": set(),
    "if __name__ == '__main__':\n    import time\n    time.time()": set(),
    "import os\nos.environ['X'] = '1'": {"leaves_files", "knows_the_test"},
    "from numba import cuda\ncounts = a = {}\ncounts[cuda.threadIdx.x] = 0": set(),
    "class A:\n    def __del__(self):\n        pass": {"exit_hook"},
    "import os\nos.times()": set(),
    "import importlib\nm = importlib.import_module('math')\nm.inf": set(),
    "import importlib\nm = importlib.import_module('gc')\nm.get_objects()": {"looks_around"},
    "import importlib\nm = importlib.import_module('g' + 'c')": {"hides_code"},
    "import weakref\nplans = weakref.WeakValueDictionary()": set(),
    "import logging\nlogging.getLogger('a').findCaller()": {"looks_around"},
    "import numpy as np\na = 1 if np.datetime64('now') > 0 else 2": {"knows_the_test"},
    "import uuid\nmade = uuid.uuid1().time\nif made > 9:\n    a = 1": {"knows_the_test"},
    "import uuid\nuuid.uuid1()": set(),
    "import types\nisinstance(print, types.BuiltinFunctionType)": set(),
    "import types\ntypes.FunctionType": {"hides_code"},
    "import os\na, b = os.pipe()\nos.write(b, b'1')\nos.read(a, 1)\nos.close(a)": set(),
    "import os\na, b = os.pipe()\na = 3\nos.write(a, b'1')": {"forged"},
    "import os\na, b = os.pipe()\ndef f(a):\n    os.write(a, b'1')": {"forged"},
    "no Python {": set(),
}


@pytest.mark.parametrize("text", SAYS)
def test_what_a_text_says(text):
    facts = facts_of(text)
    assert {reason.key for reason in facts.reasons} == SAYS[text], facts.reasons
    assert {reason.key for reason in facts.reasons} <= words.REASONS.keys()


def test_who_calls_a_neighbour_of_what_was_ordered_has_not_written_it():
    ordered = library.forbidden(Demands(), product, (np.ones((1, 1)), np.ones((1, 1))))
    names = set().union(*ordered.values())
    assert {"@", "matmul", "mm", "conv2d", "einsum"} <= names and "sum" not in names
    named = library.forbidden(Demands(library=("aten._softmax",)), product, ())
    assert "cross_entropy" in set().union(*named.values())
    assert not library.forbidden(Demands(library=()), product, ())


def test_values_of_fewer_digits_and_hostile_ones_keep_type_and_shape():
    values = np.random.default_rng(0).normal(size=(3, 5)).astype("f")
    for change in (FEWER | HOSTILE | SORTED | CLOSE).values():
        other = np.asarray(change(values.copy()))
        assert other.shape == values.shape and other.dtype == values.dtype
    half = values.astype("e").astype("f")
    assert np.array_equal(FEWER["float16 or TF32"](half), half)


def test_a_reply_of_another_form_is_no_reply():
    assert isinstance(unpacked({"array": 0, "dtype": "<f4", "shape": [1]}, [b"1234"]), Array)
    for tree in ({"array": 0, "dtype": "O", "shape": [1]}, {"array": 9}, {}, None, {"tensor": 0}):
        with pytest.raises(Forged):
            unpacked(tree, [b"1234"])
    for notes in (None, {"lines": "many"}, {"operations": ["mm"]}, {"swallowed": [["a"]]}):
        with pytest.raises(Forged):
            notes_of({"notes": notes})


def test_a_clock_of_the_host_sees_each_call_and_two_clocks_that_differ_are_named():
    own, whole = samples(lambda n: time.sleep(n), Host(), [lambda: (0.002,)], 3)
    assert len(own) == 3 and all(2 <= one < 200 for one in own) and own == whole
    good = {"own": [1.0], "whole": [1.0], "each": 1.1, "held": 0}
    late, told = good | {"whole": [2.0]}, good | {"own": [0.1], "whole": [0.1]}
    found = [fast.of_clocks([one]) for one in (good, late, told, good | {"held": 1})]
    keys = [[reason.key for reason in one] for one in found]
    assert keys == [[], ["left_running"], ["clock_differs"], ["holds_cache"]]
    assert fast.of_clocks([told, told | {"each": 0.0}]) == []  # a busy machine, in one turn alone
    steady, shaken = ({"median": 1.0, "spread": spread} for spread in (0.1, 0.6))
    assert fast.of_spreads({"candidate": steady, "rival": steady}) is None
    assert "The rival" in fast.of_spreads({"candidate": steady, "rival": shaken}).says
    assert fast.beyond_the_roof(Demands(), SimpleNamespace(draw=lambda n: ()), 1, 1.0) == []


class Slow:
    """A process each of whose calls takes so many milliseconds of a clock that is set by hand."""

    def __init__(self, milliseconds):
        self.seconds, self.now, self.told = 1e-3 * milliseconds, 0.0, []

    def perf_counter(self):
        return self.now

    def queued(self):
        return 0.0

    def ask(self, what, patience, rounds, calls, warm_up):
        self.now += self.seconds * (rounds * calls + warm_up)
        self.told.append(rounds * calls + warm_up)
        return {"own": [1e3 * self.seconds] * rounds, "whole": [0.0] * rounds, "held": 0}, []


@pytest.mark.parametrize("milliseconds, rounds", [(0.01, 30), (40, 12), (2000, 5)])
def test_a_slow_call_is_timed_in_fewer_rounds(milliseconds, rounds, monkeypatch):
    box = Slow(milliseconds)
    monkeypatch.setattr(fast, "time", box)
    took = fast.timed(box)
    assert len(took["own"]) == rounds and took["each"] == pytest.approx(milliseconds)
    assert sum(box.told) < 3 * rounds + 10


def test_arguments_that_are_timed_are_the_same_values_at_other_addresses():
    for value in (np.arange(6.0), torch.arange(6.0), 7):
        copy = desk.elsewhere(value)
        assert np.array_equal(copy, value) and not desk.overlap(copy, value)


def test_each_view_holds_the_same_values_in_another_order():
    block = np.arange(24.0).reshape(2, 3, 4)
    for value in (np.arange(6.0), block, torch.arange(6.0).view(2, 3)):
        for change in desk.LYING.values():
            assert np.array_equal(change(value), value)
    steps = {block.strides, *(change(block).strides for change in desk.VIEWS.values())}
    assert len(steps) == 1 + len(desk.VIEWS)
    assert desk.one_later(block).ctypes.data % desk.ALIGNMENT == block.itemsize


@pytest.mark.parametrize("value", [np.arange(7.0), torch.arange(7.0)])
def test_what_is_written_beside_an_array_is_seen(value):
    given = desk.argument_of(sandbox.pack(value))
    assert np.array_equal(given, value) and not desk.is_overrun(given)
    whole = np.asarray(given)
    beside = np.lib.stride_tricks.as_strided(whole, (8,), whole.strides)
    assert np.isnan(beside[7])
    beside[7] = 0
    assert desk.is_overrun(given)


def test_on_a_gpu_one_process_imports_what_all_candidates_need(monkeypatch):
    monkeypatch.setattr(handed_in, "has_gpu", lambda: True)
    texts = ["import numpy\n", "import triton\n", "from numba import cuda\n"]
    given = [handed_in.of_text(text, "submission") for text in texts]
    given.append(handed_in.of(product, Demands()))
    assert len({one.modules for one in given}) == 1
    assert [one.speaks_of_kernels for one in given] == [False, True, True, True]


def test_each_reason_can_be_given():
    folder = Path(words.__file__).parent
    others = [one for one in folder.glob("*.py") if one.name != "words.py"]
    text = "".join(one.read_text(encoding="utf-8") for one in others)
    assert [key for key in words.REASONS if f'"{key}"' not in text] == []


def test_a_function_of_ones_own_and_the_language_of_kernels_are_no_library():
    own = "import triton.language as tl\ndef softmax(x): ...\nsoftmax(tl.dot(1, 2))\n"
    assert facts_of(own).called.keys() <= {"tl"}
    assert not facts_of("widths = sorted({1, 16, 4})").called
    theirs = "import numpy as np\nf = np.dot\nfrom torch import softmax as s\na.cumsum(1)\n"
    assert {"dot", "softmax", "cumsum"} <= facts_of(theirs).called.keys()


def test_a_tile_language_s_product_in_tf32_is_known_by_what_it_is_not_told():
    text = "import triton.language as tl\ndef f(a, b):\n    return tl.dot(a, b{})\n"
    assert facts_of(text.format("")).narrow
    for full in (", input_precision='ieee'", ", allow_tf32=False"):
        assert not facts_of(text.format(full)).narrow


def test_a_function_is_not_accused_by_the_text_that_stands_in_its_file_since_it_was_loaded(
    tmp_path, monkeypatch
):
    file = tmp_path / "loaded_once.py"
    lines = (
        "def cheat():\n    import time\n    time.sleep = print\n\n\ndef right():\n    return 1\n"
    )
    file.write_text(lines)
    monkeypatch.syspath_prepend(tmp_path)
    right = importlib.import_module("loaded_once").right
    assert handed_in.of(right, Demands()).source.startswith("def right")
    file.write_text("# a line\n" * 5 + lines)
    assert "cheat" in inspect.getsource(right) and handed_in.of(right, Demands()).source == ""
