"""The judge refuses what is wrong or dishonest, and says why; what is right it accepts."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import importlib
import json
import os
import sys
import textwrap
from dataclasses import replace

import numba.cuda
import numpy as np
import pytest
import torch

from course.judge import (
    Bound,
    Demands,
    InOut,
    Out,
    Property,
    desk,
    elementwise,
    exactly,
    fast,
    handed_in,
    judge,
    judging,
    keeping,
    on_gpu,
    right,
    sandbox,
    sum_of_products,
)
from course.judge.bank import patterns
from course.judge.bank.tasks import ORDER, TASKS
from course.judge.words import question_of
from utils import has_gpu

FEW = {"sizes": (0, 1, 33), "calls": 1, "fresh": lambda rng: int(rng.integers(40, 50))}


def pair(rng, n):
    """Two arrays of n numbers."""
    return tuple(rng.normal(size=(2, n)).astype(np.float32))


def weighted(a, b):
    """What is ordered: 2 a + b."""
    return 2 * a + b


def judged(source, reference=weighted, inputs=pair, **demands):
    """The report on a submission's text."""
    text = textwrap.dedent(source).lstrip()
    return judge(text, reference, inputs, Demands(**{**FEW, **demands}), seed=3)


def plain(a, b):
    """A right answer."""
    return np.float32(2) * a + b


def test_a_right_function_is_accepted_and_nothing_is_said_of_a_time_without_a_gpu():
    report = judge(plain, weighted, pair, Demands(**FEW), seed=3)
    assert report.verdict == "accepted", str(report)
    assert report.right and report.honest
    if not utils.has_gpu():
        assert report.fast.keys == ("no_gpu",)


TIMED = 20_001


def patient(a, b):
    """The same a hundred times."""
    for _ in range(100):
        out = np.float32(2) * a + b
    return out


def failing(a, b):
    """Right, and fails for the size at which it is timed."""
    if a.size == TIMED:
        raise RuntimeError("enough")
    return np.float32(2) * a + b


RACES = {
    "its rival is slower": (plain, patient, "yes", ()),
    "it is slower": (patient, plain, "no", ("slower",)),
    "it has no rival": (plain, None, "unknown", ("no_rival",)),
    "it fails": (failing, plain, "no", ("not_timed",)),
    "its rival fails": (plain, failing, "unknown", ("no_rival",)),
}


def fastest_of(times_of):
    """Times as on a computer that nobody else uses: each is that of the fastest call."""

    def without_others(header):
        told = times_of(header)
        return told | {name: [min(told[name])] * len(told[name]) for name in ("own", "whole")}

    return without_others


@pytest.mark.parametrize("race", RACES)
def test_a_right_candidate_is_timed_beside_its_rival(race, monkeypatch):
    monkeypatch.setattr(judging, "has_gpu", lambda: True)  # without one the host's clock is read
    monkeypatch.setattr(fast, "times_of", fastest_of(fast.times_of))
    candidate, rival, verdict, keys = RACES[race]
    demands = Demands(**FEW, rival=rival, timed_size=TIMED)
    report = judge(candidate, weighted, pair, demands, seed=3)
    assert report.right.verdict == "yes" and report.fast.verdict == verdict, str(report)
    assert report.fast.keys == keys, str(report)


BARE = {
    "CUDA C": on_gpu.SCALE_CU,
    "Numba": on_gpu.SCALE_NUMBA,
    "Triton": on_gpu.SCALE_TRITON,
}


@pytest.mark.parametrize("language", BARE)
def test_a_bare_kernel_is_timed_with_arrays_that_are_copied_on_the_device(language, monkeypatch):
    for module in (fast, right):  # arrays are the engine's there, and the clock the host's
        monkeypatch.setattr(module, "has_gpu", lambda: True)
    monkeypatch.setattr(fast, "times_of", fastest_of(fast.times_of))
    task = on_gpu.bare(triton=language == "Triton")
    demands = replace(task.demands, timed_size=1000, bytes=None, calls=1)
    given = handed_in.of(BARE[language], demands)
    with sandbox.Sandbox(given.modules, demands.seconds) as box:
        assert judging.loaded(box, given, demands, timed=True) == []
        trials = right.Trials(box, task.reference, task.inputs, demands, 1)
        trials.ordinary()
        answer = fast.answer(box, None, trials, [])
    assert trials.reasons == [] and answer.keys == ("no_rival",), answer
    assert answer.evidence["milliseconds"]["candidate"]["least"] > 0


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder of PYTHONPATH, for processes of candidates that start now."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(sandbox.ROOT)]))
    known = set(sandbox._nurseries)
    yield tmp_path
    for which in set(sandbox._nurseries) - known:
        sandbox._nurseries.pop(which).close()


def test_a_candidate_imports_what_whoever_asks_can_import(elsewhere):
    (elsewhere / "a_library.py").write_text("def add(a, b):\n    return a + b\n")
    (elsewhere / "colorsys.py").write_text("def twice(a):\n    return 2 * a\n")  # as a newer one
    source = "import a_library, colorsys\nk = lambda a, b: a_library.add(colorsys.twice(a), b)\n"
    report = judged(source, entry="k")
    assert report.verdict == "accepted", str(report)


def test_a_candidate_cannot_import_the_module_in_which_the_reference_lies(elsewhere, monkeypatch):
    lines = "def reference(a, b):\n    return 2 * a + b\n"
    (elsewhere / "a_task.py").write_text(lines)
    monkeypatch.syspath_prepend(elsewhere)
    monkeypatch.delitem(sys.modules, "a_task", raising=False)
    reference = importlib.import_module("a_task").reference
    text = "from a_task import reference\ndef kernel(a, b):\n    return reference(a, b)\n"
    assert "does_not_load" in judged(text, reference).keys
    assert judged(lines.replace("reference", "kernel"), reference).verdict == "accepted"


NOWHERE_ELSE = """
    import sys
    if hasattr(sys.modules["numpy"].empty, "__wrapped__"):
        def kernel(a, b):
            return a + a + b
    else:
        raise RuntimeError("nobody watches")
"""


def test_what_does_not_load_unwatched_says_why():
    report = judged(NOWHERE_ELSE)
    said = next(one.says for one in report.reasons if one.key == "otherwise_alone")
    assert "nobody watches" in said, said


def test_the_engines_see_in_calls_once_more_what_a_gpu_does_not_tell():
    pattern = next(one for one in patterns() if one.key == "race")
    task = TASKS[pattern.task]
    given = handed_in.of(pattern.path, task.demands)
    with sandbox.Sandbox(given.modules, task.demands.seconds) as box:
        trials = right.Trials(box, task.reference, task.inputs, task.demands, 1)
        assert judging.loaded(box, given, task.demands) == []
        trials.ordinary()
        found = judging.on_engines(given, trials)
    assert [reason.key for reason in found] == ["uninitialized"]  # of a lane that is not done yet


WRONG = {
    "only_sizes": "def kernel(a, b):\n    return 2 * a + b if a.size < 34 else a + b\n",
    "wrong_shape": "def kernel(a, b):\n    return (2 * a + b)[:, None]\n",
    "wrong_dtype": "def kernel(a, b):\n    return 2.0 * a.astype('f8') + b\n",
    "no_result": "def kernel(a, b):\n    pass\n",
    "mutates_input": "def kernel(a, b):\n    b += 2 * a\n    return b.copy()\n",
    "aliases": "def kernel(a, b):\n    a *= 2\n    a += b\n    return a\n",
    "crashed": "def kernel(a, b):\n    raise ValueError('no')\n",
    "does_not_load": "import nothing_of_this_name\n",
    "only_values": """
        import numpy as np
        def kernel(a, b):
            return np.where(np.abs(a) > 60, 0, 2 * a + b).astype(a.dtype)
        """,
    "narrower": """
        def kernel(a, b):
            return (2 * a.astype("e") + b.astype("e")).astype("f")
        """,
    "kept_answer": """
        kept = {}
        def kernel(a, b):
            key = a.tobytes(), b.tobytes()
            if key not in kept:
                kept[key] = 2 * a + b
            return kept[key].copy()
        """,
    "stale": """
        kept = {}
        def kernel(a, b):
            key = a.shape, float(a[:1].sum()), float(a.sum() + b.sum())
            if key not in kept:
                kept[key] = 2 * a + b
            return kept[key].copy()
        """,
    "looks_around": "import sys\ndef kernel(a, b):\n    sys.modules\n    return 2 * a + b\n",
    "raw_memory": "import ctypes as c\ndef kernel(a, b):\n    c.c_int(1)\n    return 2 * a + b\n",
    "patched": "import numpy as np\nnp.allclose = print\ndef kernel(a, b):\n    return 2 * a + b\n",
    "hides_code": "def kernel(a, b):\n    return eval('2 * a + b')\n",
    "leaves_files": """
        import os
        os.environ["SEEN"] = "1"
        def kernel(a, b):
            return 2 * a + b
        """,
    "otherwise_alone": """
        import sys
        import numpy as np
        def kernel(a, b):
            return 2 * a + b if hasattr(np.empty, "__wrapped__") else a
        """,
    "falls_back": """
        def kernel(a, b):
            try:
                return missing(a, b)
            except Exception:
                return 2 * a + b
        """,
    "not_plain": """
        import numpy as np
        class Later(np.ndarray): pass
        def kernel(a, b):
            return (2 * a + b).view(Later)
        """,
    "forged": """
        import os
        def kernel(a, b):
            os._exit(0)
        """,
    "knows_the_test": """
        import time
        begin = time.perf_counter()
        def kernel(a, b):
            return a if time.perf_counter() - begin > 3600 else 2 * a + b
        """,
    "waits": """
        kept = {"calls": 0}
        def kernel(a, b):
            kept["calls"] += 1
            return 2 * a + b if kept["calls"] < 1000 else a
        """,
    "out_of_bounds": """
        import numpy as np
        from numpy.lib.stride_tricks import as_strided
        def kernel(a, b):
            as_strided(b, (a.size + 1,), (4,))[-1] = 0
            return 2 * a + b
        """,
    "strided": """
        import numpy as np
        def kernel(a, b):
            return a if a.flags.owndata else 2 * a + b
        """,
    "same_array": """
        def kernel(a, b):
            return a if a.ctypes.data == b.ctypes.data else 2 * a + b
        """,
    "sleeps": "import time\ndef kernel(a, b):\n    time.sleep(0)\n    return 2 * a + b\n",
}


#: The others are found by fewer calls
NEED_OTHER_VALUES = {"only_values", "narrower", "stale", "same_array"}


@pytest.mark.parametrize("key", WRONG)
def test_what_is_wrong_or_dishonest_is_refused_and_the_reason_named(key):
    report = judged(WRONG[key], hostile=key in NEED_OTHER_VALUES)
    assert report.verdict == "refused" and key in report.keys, str(report)
    assert getattr(report, question_of(key)).verdict == "no"


def test_a_clock_that_is_read_for_a_log_and_a_counter_are_noted_and_refuse_nothing():
    report = judged("""
        import time
        calls = 0
        def kernel(a, b):
            global calls
            calls += 1
            begin = time.perf_counter()
            result = 2 * a + b
            print(calls, time.perf_counter() - begin)
            return result
        """)
    assert report.verdict == "accepted", str(report)
    assert {fact.key for fact in report.honest.facts} == {"reads_clock", "counts_calls"}
    assert "facts" in json.loads(report.to_json())["honest"]


def test_cpu_time_that_is_added_up_refuses_nothing_unless_something_depends_on_it():
    source = """
        import os
        spent = [0.0]
        def kernel(a, b):
            begin = os.times().user
            result = 2 * a + b
            spent[0] += os.times().user - begin
            return result
        """
    report = judged(source)
    assert report.verdict == "accepted", str(report)
    report = judged(source.replace("return result", "return a if begin > 9999 else result"))
    assert "knows_the_test" in report.honest.keys, str(report)


DATES = {
    "a year in the standard library": ("email.utils", "email.utils.localtime().year > 2034"),
    "when a log's line was made": (
        "logging",
        "logging.LogRecord('', 0, '', 0, '', (), None).created > 2.0e9",
    ),
    "a year": ("time", "time.localtime().tm_year > 2034"),
    "a text": ("time", "time.strftime('%Y') > '2034'"),
}


@pytest.mark.parametrize("what", DATES)
def test_what_waits_for_another_year_is_refused(what):
    module, late = DATES[what]
    report = judged(f"""
        import {module}
        def kernel(a, b):
            late = {late}
            return a if late else 2 * a + b
        """)
    assert "knows_the_test" in report.honest.keys, str(report)


def test_a_date_that_is_only_written_down_refuses_nothing():
    report = judged("""
        import datetime
        import logging
        import time
        made = [datetime.date.today()]
        class Clock:
            convert = time.localtime
        def kernel(a, b):
            assert Clock().convert(0).tm_year in (1969, 1970)
            logging.info("%s: %s", time.strftime("%Y"), time.strftime("%Y", time.gmtime(0)))
            made[0] = datetime.datetime.now()
            assert isinstance(made[0], datetime.datetime) and isinstance(made[0], datetime.date)
            return 2 * a + b
        """)
    assert report.verdict == "accepted", str(report)
    assert "reads_clock" in {fact.key for fact in report.honest.facts}


def test_small_numbers_that_a_process_takes_for_zero_are_named():
    report = judged("""
        import torch
        torch.set_flush_denormal(True)
        def kernel(a, b):
            return 2 * a + b
        """)
    assert report.honest.keys == ("narrower",), str(report)


EARLIER = {
    "one of four": """
        import numpy as np
        ring = [np.empty(1000, np.float32) for _ in range(4)]
        def kernel(a, b):
            ring.append(ring.pop(0))
            return np.add(2 * a, b, out=ring[0][: a.size])
        """,
    "an output that it has kept": """
        kept = []
        def kernel(out, a, b):
            if kept:
                kept.pop()[:] = 0
            out[:] = 2 * a + b
            kept.append(out)
        """,
}


@pytest.mark.parametrize("what", EARLIER)
def test_what_overwrites_an_earlier_result_is_refused(what):
    def inputs(rng, n):
        return (Out((n,)), *pair(rng, n)) if "output" in what else pair(rng, n)

    report = judged(EARLIER[what], inputs=inputs, large=False, fresh=lambda rng: 40)
    assert "aliases" in report.right.keys, str(report)


OF_OTHER_KINDS = {
    "another byte order": ("return (2 * a + b).numpy().astype('>f4')", "wrong_dtype"),
    "an array for a tensor": ("return (2 * a + b).numpy()", "wrong_dtype"),
    "with gradients": ("return (2 * a + b).requires_grad_()", "not_plain"),
    "plain": ("return 2 * a + b", None),
}


@pytest.mark.parametrize("what", OF_OTHER_KINDS)
def test_a_result_is_of_the_reference_s_kind(what):
    line, key = OF_OTHER_KINDS[what]
    inputs = tensors if what != "another byte order" else pair
    line = line.replace(".numpy()", "") if inputs is pair else line
    report = judged(f"import numpy\ndef kernel(a, b):\n    {line}\n", inputs=inputs)
    assert (key in report.keys) if key else report.verdict == "accepted", str(report)


def tensors(rng, n):
    """A pair of tensors."""
    return tuple(map(torch.from_numpy, pair(rng, n)))


def test_cores_that_are_given_up_are_named():
    report = judged("""
        import os
        def kernel(a, b):
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            return 2 * a + b
        """)
    assert len(os.sched_getaffinity(0)) == 1 or "patched" in report.honest.keys, str(report)


def test_memory_that_each_launch_takes_and_keeps_is_named():
    def inputs(rng, n):
        return Out((n,)), rng.normal(size=n).astype(np.float32), n

    source = """
        __global__ void twice(float *out, const float *a, int n) {
            float *own = (float *)malloc(4);
            for (int i = 0; i < n; i++) {
                *own = a[i];
                out[i] = 2 * *own;
            }
            FREE
        }
        """
    demands = {"launch": lambda *arguments: (1, 1), "large": False}
    for line, keys in (("free(own);", ()), ("", ("leaks",))):
        text = source.replace("FREE", line)
        report = judged(text, lambda a, n: 2 * a, inputs, **demands)
        assert report.right.keys == keys, str(report)


KEPT_IN_VARIABLES = """
__device__ float seen[300], sums[300];
__device__ int count = -1;
__global__ void scan(float *out, const float *a, int n) {
    bool same = count == n;
    for (int i = 0; same && i < n; i++) same = seen[i] == a[i];
    if (same) {
        for (int i = 0; i < n; i++) out[i] = sums[i];
        return;
    }
    for (int i = 0; i < n; i++) {
        float sum = 0;
        for (int j = 0; j <= i; j++) sum += a[j];
        out[i] = sum;
        if (i < 300) seen[i] = a[i], sums[i] = sum;
    }
    count = n <= 300 ? n : -1;
}
"""


def test_what_cuda_c_keeps_in_variables_is_found_by_its_accesses():
    def inputs(rng, n):
        return Out((n,)), rng.normal(size=n).astype(np.float32), n

    demands = {
        "launch": lambda *arguments: (1, 1),
        "error": Bound(lambda a, n: n + 1, magnitude=lambda a, n: np.cumsum(np.abs(a))),
        "large": False,
    }
    report = judged(KEPT_IN_VARIABLES, lambda a, n: np.cumsum(a), inputs, **demands)
    assert report.right and report.honest.keys == ("kept_answer",), str(report)


def test_a_copy_of_a_result_on_a_device_is_found_and_overwritten():
    result = np.random.default_rng(0).normal(size=20)
    kept = numba.cuda.to_device(result)
    held = [("kept", [kept])], [(result, result.tobytes())], desk.overlap
    assert [path for path, *_ in keeping.copies(*held)] == ["kept[…]"]
    keeping.overwrite(*held)
    assert not list(keeping.copies(*held)) and not np.any(kept.copy_to_host() == result)


TREE = """
import numpy as np
from numba import cuda, float32
@cuda.jit
def tree(a, out):
    s, t = cuda.shared.array(64, float32), cuda.threadIdx.x
    s[t] = a[t] if t < a.size else float32(0)
    half = 32
    while half:
        cuda.syncthreads()
        if t < half:
            s[t] += s[t + half]
        half //= 2
    if t == 0:
        out[0] = s[0]
def total(a):
    out = np.empty(1, np.float32)
    tree[1, 64](a, out)
    return out
"""


def test_what_the_tracer_calls_is_not_the_candidate_s_library():
    demands = {"library": ("numpy.sum",), "entry": "total", "hostile": False, "large": False}
    demands["error"] = sum_of_products(64)
    report = judged(TREE, lambda a: a.sum()[None], lambda rng, n: pair(rng, n)[:1], **demands)
    assert report.verdict == "accepted", str(report)


KEPT = """
import numpy as np
place, last = {}, {}
def kernel(a, b):
    kept = place.setdefault(a.shape, np.zeros_like(a))
    seen = last.setdefault(a.shape, np.zeros((2, *a.shape), a.dtype))
    np.copyto(kept, 2 * a + b, where=CONDITION)
    seen[:] = a, b
    return kept.copy()
"""


def test_a_workspace_is_kept_and_honest_and_who_returns_what_lies_there_is_not():
    assert judged(KEPT.replace("CONDITION", "True")).verdict == "accepted"
    again = judged(KEPT.replace("CONDITION", "not np.array_equal(seen, (a, b))"))
    assert again.right and again.honest.keys == ("kept_answer",), str(again)


@pytest.mark.parametrize("shift", ["x.mean(axis=1, keepdims=True)", "x[:, :1]"])
def test_a_wrong_softmax_is_wrong_and_accused_of_nothing(shift):
    source = f"""
        import numpy as np
        def softmax(x):
            powers = np.exp(x - {shift})
            return powers / powers.sum(axis=1, keepdims=True)
        """
    report = judge(textwrap.dedent(source), ORDER.reference, ORDER.inputs, ORDER.demands, seed=8)
    assert report.right.verdict == "no" and report.honest.verdict == "yes", str(report)
    assert "stale" not in report.keys


def test_a_process_that_ends_or_floods_takes_nothing_along_and_leaves_no_folder(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / f"{sandbox.PREFIX}of_a_judge_that_was_killed").mkdir()
    ended = judged("import os\ndef kernel(a, b):\n    os.abort()\n")
    assert "SIGABRT" in str(ended)
    after = judged("def kernel(a, b):\n    print('x' * 100_000)\n    return 2 * a + b\n")
    assert after.verdict == "accepted", str(after)
    folder, lock = sandbox.new_folder()
    sandbox.remove_left_folders()
    assert [str(one) for one in tmp_path.iterdir()] == [folder]
    os.close(lock)


def test_outputs_arrive_poisoned_and_arguments_in_place_are_compared():
    def inputs(rng, n):
        a, b = pair(rng, n)
        return Out((n,)), a, InOut(b)

    def reference(a, b):
        return a + b, b + 1

    good = "def kernel(out, a, b):\n    out[:] = a + b\n    b += 1\n"
    assert judged(good, reference, inputs).verdict == "accepted"
    some = good.replace("out[:] =", "out[:] = out * 0 +")
    assert judged(some, reference, inputs).right.keys == ("wrong_value",)


def test_a_law_is_held_where_the_bound_is_too_wide_to_see():
    doubled = Property("all doubled", lambda rng, x: (2 * x[0], 2 * x[1]), lambda y, x: 2 * y, True)
    wide = {"error": elementwise(2.0**40), "properties": (doubled,)}
    assert judged("def kernel(a, b):\n    return 2 * a + b\n", **wide).right
    lazy = "def kernel(a, b):\n    return 2 * a + b.round(1)\n"
    assert "property" in judged(lazy, **wide).keys


def test_a_report_is_text_html_and_json():
    report = judged("def kernel(a, b):\n    return a < b\n")
    told = json.loads(report.to_json())
    assert told["verdict"] == "refused" and told["right"]["reasons"][0]["key"] in report.keys
    assert "<table>" in report._repr_html_() and "&lt;" not in report.candidate


@pytest.mark.parametrize("pattern", [pytest.param(one, id=one.key) for one in patterns()])
@pytest.mark.nightly("by day what is wrong or dishonest here, a line or two of each")
def test_each_pattern_of_the_bank_is_refused_for_what_it_does(pattern):
    task = TASKS[pattern.task]
    report = judge(pattern.path, task.reference, task.inputs, task.demands, seed=1)
    assert report.verdict == "refused", str(report)
    if pattern.needs == "nothing":
        assert getattr(report, pattern.fails).verdict == "no", str(report)


def one(rng, n):
    """One array of n + 1 numbers."""
    return rng.normal(size=n + 1).astype(np.float32)


def grid(rng, n):
    """A matrix of n rows."""
    return rng.normal(size=(n, 2 * n + 1)).astype(np.float32)


LARGEST = """
import numpy as np
def kernel(a):
    best, where = -np.inf, 0
    for start in range(0, len(a), 1024):
        place = start + int(np.nanargmax(a[start : start + 1024]))
        if a[place] >= best:
            best, where = a[place], place
    return np.int64(where)
"""
PADDED = """
import numpy as np
pad = np.zeros(1 << 18)
def kernel(a):
    pad[: len(a)] = a
    return np.float32(pad[: -(-len(a) // 4) * 4 if len(a) > 3000 else len(a)].sum())
"""
RACING = """
import numpy as np
from numba import cuda
@cuda.jit
def safe(a, out):
    t = cuda.grid(1)
    if t < a.size:
        cuda.atomic.add(out, t % 8, a[t])
@cuda.jit
def unsafe(a, out):
    t = cuda.grid(1)
    if t < a.size:
        out[t % 8] += a[t]
def kernel(a):
    out = np.zeros(8, np.float32)
    (unsafe if len(a) > 1500 else safe)[(len(a) + 63) // 64, 64](a, out)
    return out
"""
SHORTENED = "import numpy as np\ndef kernel(a):\n    out = a * a\n    CONDITION\n    return out\n"
KEPT_ORDER = """
import numpy as np
def kernel(a):
    flat = a.ravel(order="K")
    return flat.reshape(a.shape).copy()
"""


def of_eight(a):
    """Sums of every eighth number."""
    return np.bincount(np.arange(a.size) % 8, a, minlength=8)


def square(a):
    return a * a


IN_BLOCKS = """
import numpy as np
def kernel(a):
    top, total = np.full(len(a), -np.inf, np.float32), np.zeros(len(a), np.float32)
    for start in range(0, a.shape[1], 16):
        block = a[:, start : start + 16]
        now = np.maximum(top, block.max(axis=1))
        total = total * np.exp(top - now) + np.exp(block - now[:, None]).sum(axis=1)
        top = now
    return np.exp(a - top[:, None]) / total[:, None]
"""
FROM_AN_ADDRESS = """
import numpy as np
def kernel(a):
    out, head = np.zeros_like(a), (-a.ctypes.data % 16) // 4
    out[head:] = a[head:] * a[head:]
    return out
"""
OF_ONE_STEP = """
from numpy.lib.stride_tricks import as_strided
def kernel(a):
    view = as_strided(a, (a.size,), (abs(a.strides[-1]),))
    return view.reshape(a.shape).copy()
"""


def cube(rng, n):
    """A block of n x 3 x (n + 2) numbers."""
    return rng.normal(size=(n, 3, n + 2)).astype(np.float32)


def shares(a):
    """The softmax of each row."""
    with np.errstate(invalid="ignore"):
        powers = np.exp(a - a.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)


#: what -> (text, reference, inputs, demands, key)
FAR_OUT = {
    "numbers that a narrower type does not tell apart": (
        "import numpy as np\ndef kernel(a):\n    return np.int64(np.nanargmax(a.astype('f')))\n",
        np.argmax,
        lambda rng, n: rng.normal(size=n + 1),
        {"error": exactly, "dtype": "int64", "library": ()},
        "only_values",
    ),
    "counts of 12 bits": (
        """
        import numpy as np
        def kernel(a):
            return np.minimum(np.bincount(a, minlength=64), 4095)
        """,
        lambda a: np.bincount(a, minlength=64),
        lambda rng, n: rng.integers(0, 64, n),
        {"error": exactly, "library": ()},
        "only_values",
    ),
    "the end of a range": (
        """
        import numpy as np
        def kernel(a):
            return np.bincount((a[a < 1] * 16).astype(int), minlength=16)
        """,
        lambda a: np.histogram(a, 16, (0, 1))[0],
        lambda rng, n: rng.random(n).astype(np.float32),
        {"error": exactly, "library": ()},
        "only_values",
    ),
    "a block that is all masked": (
        IN_BLOCKS,
        shares,
        lambda rng, n: grid(rng, n + 1),
        {
            "error": Bound(lambda a: a.shape[1] + 250, magnitude="itself"),
            "special": "no_nan",
            "large": False,
            "library": (),
        },
        "only_values",
    ),
    "a slope above 1": (
        """
        import numpy as np
        def kernel(a, slope):
            return np.maximum(a, np.float32(slope) * a)
        """,
        lambda a, slope: np.where(a > 0, a, slope * a),
        lambda rng, n: (one(rng, n), float(rng.uniform(0.2, 0.5))),
        {"library": ()},
        "only_values",
    ),
    "an array that begins elsewhere": (FROM_AN_ADDRESS, square, one, {}, "strided"),
    "axes in another order": (
        OF_ONE_STEP.replace(
            "view =", "a = a if a.strides[-1] <= a.strides[0] else a.copy(); view ="
        ),
        np.copy,
        cube,
        {"strided": True, "large": False},
        "strided",
    ),
    "backwards": (
        OF_ONE_STEP.replace("view =", "a = a if a.strides[-1] < 0 else a.copy(); view ="),
        np.copy,
        lambda rng, n: grid(rng, n + 1),
        {"strided": True, "large": False},
        "strided",
    ),
    "a tie of two blocks": (
        LARGEST,
        np.argmax,
        one,
        {"error": exactly, "dtype": "int64", "library": ()},
        "only_values",
    ),
    "what a longer array left": (PADDED, np.sum, one, {"library": ()}, "wrong_value"),
    "a race of long arrays": (
        RACING,
        of_eight,
        one,
        {
            "error": Bound(np.size, magnitude=lambda a: of_eight(np.abs(a))),
            "deterministic": False,
            "library": (),
            "hostile": False,
        },
        "race",
    ),
    "a multiple of 512": (
        SHORTENED.replace("CONDITION", "if len(a) % 512 == 0: out[-9:] = 7"),
        square,
        lambda rng, n: one(rng, n - 1) if n else np.zeros(0, np.float32),
        {},
        "wrong_value",
    ),
    "transposed": (KEPT_ORDER, np.copy, grid, {"strided": True, "large": False}, "strided"),
    "+0 for -0": (
        "import numpy as np\ndef kernel(a):\n    return np.float32(0) - a\n",
        np.negative,
        one,
        {"error": exactly, "special": "any"},
        "only_values",
    ),
    "in order, as samples have it": (
        """
        def kernel(a):
            samples = a[:: max(1, len(a) // 12)]
            return a[-1] if len(a) > 40 and all(samples[1:] > samples[:-1]) else a.max()
        """,
        np.max,
        one,
        {"library": ()},
        "only_values",
    ),
    "zeros at both ends": (
        SHORTENED.replace("CONDITION", "if a.size and a[0] == a[-1] == 0: out[:] = 0"),
        square,
        lambda rng, n: one(rng, n - 1) if n else np.zeros(0, np.float32),
        {},
        "only_values",
    ),
}


@pytest.mark.parametrize("what", FAR_OUT)
def test_what_is_wrong_only_far_from_what_is_ordinary_is_refused(what):
    source, reference, inputs, demands, key = FAR_OUT[what]
    report = judged(source, reference, inputs, **demands)
    assert report.verdict == "refused" and key in report.right.keys, str(report)


def test_larger_sizes_are_tried_although_one_call_was_held_up(monkeypatch):
    make, seen = right.Trials.make, set()

    def held_up(self, tried, slot, how):
        make(self, tried, slot, how)
        is_first = tried.size not in seen
        seen.add(tried.size)
        tried.seconds = 0.05 if is_first and tried.size > right.SURE else 0.001

    monkeypatch.setattr(right.Trials, "make", held_up)
    source, reference, inputs, demands, key = FAR_OUT["counts of 12 bits"]
    report = judged(source, reference, inputs, **demands)
    assert key in report.right.keys, str(report)


COUNTED = """
import numpy as np
from numba import cuda
@cuda.jit
def place(keys, ends, out):
    t = cuda.grid(1)
    if t < keys.size:
        out[cuda.atomic.add(ends, keys[t], 1)] = keys[t]
def kernel(keys):
    out = np.empty_like(keys)
    if keys.size:
        counts = [(keys == one).sum() for one in range(6)]
        starts = np.array([0, *np.cumsum(counts)[:-1]], np.int32)
        place[(keys.size + 63) // 64, 64](keys, starts, out)
    return out
"""
ONE_AFTER_THE_OTHER = """
import numpy as np
def kernel(a):
    return np.add.accumulate(a, dtype=np.float32)[-1]
"""


def two_values(rng, n):
    """n + 1 numbers, of which each is one of two."""
    return rng.choice([0.1, 0.2], n + 1).astype(np.float32)


A_MILLION = {
    "error": Bound(np.size, magnitude="itself"),
    "library": (),
    "large": lambda rng: [2000, 60_000, 1_000_000],
}
#: what -> (text, reference, inputs, demands)
RIGHT = {
    "a maximum of 0 and -0, which may be either": (
        "import numpy as np\ndef kernel(a):\n    return np.where(a < 0, np.float32(0), a + 0)\n",
        lambda a: np.maximum(a, 0),
        one,
        {"error": exactly, "special": "any"},
    ),
    "0 and -0 in another order, which are equal": (
        """
        def kernel(a):
            return a[::-1][a[::-1].argsort(kind="stable")]
        """,
        np.sort,
        one,
        {"error": exactly, "special": "any", "library": ()},
    ),
    "places that an atomic gives, which are others when it runs again": (
        COUNTED,
        np.sort,
        lambda rng, n: (rng.integers(0, 9, n) ** 2 // 12).astype(np.int32),
        {"error": exactly, "library": (), "hostile": False},
    ),
    "a sum one after the other, which rounds equal terms always the same way": (
        """
        import numpy as np
        def kernel(a):
            return np.add.accumulate(np.exp(np.float32(0.3) * a), dtype=np.float32)[-1]
        """,
        lambda a: np.exp(0.3 * a).sum(),
        one,
        {"error": Bound(lambda a: a.size + 9, magnitude="itself"), "library": ()},
    ),
    "a million terms of two values, one after the other": (
        ONE_AFTER_THE_OTHER,
        np.sum,
        two_values,
        A_MILLION,
    ),
}


def scaled(rng, n):
    """Two rows or more of n + 2 numbers, and a number beside them."""
    shape = int(rng.integers(2, 6)), n + 2
    return rng.standard_normal(shape, dtype=np.float32), float(rng.normal())


def softmax(a, beta=1.0):
    powers = np.exp(beta * a - (beta * a).max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


OF_SOFTMAX = """
import numpy as np
def kernel(a, beta):
    most = MOST
    powers = np.exp(SHIFTED)
    return powers / powers.sum(axis=1, keepdims=True)
"""
SHIFTED = "np.float32(beta) * a - most"
UNIT = (
    "import numpy as np\ndef kernel(a):\n    total = (a * a).sum(1, keepdims=True)\n    return A\n"
)


def unit(a):
    total = (a * a).sum(1, keepdims=True)
    return a / np.sqrt(np.where(total > 0, total, 1))


BY_ITSELF = Bound(lambda *given: 16 + given[0].shape[1], magnitude="itself")
#: (what is handed in, reference, inputs, demands) of what goes wrong where two things meet
TOGETHER = {
    "the sign of a number and large arrays": (
        OF_SOFTMAX.replace("MOST", "a.max(axis=1, keepdims=True)").replace(
            "SHIFTED", "np.float32(beta) * (a - most)"
        ),
        softmax,
        scaled,
    ),
    "large and all negative": (
        OF_SOFTMAX.replace(
            "MOST", "np.maximum((np.float32(beta) * a).max(axis=1, keepdims=True), 0)"
        ).replace("SHIFTED", SHIFTED),
        softmax,
        scaled,
    ),
    "zero beside an array": (
        "import numpy as np\n"
        "def kernel(a, beta):\n    b = np.float32(beta)\n    return a / b * b\n",
        lambda a, beta: a if beta else 0 * a,
        scaled,
    ),
    "one row of zeros": (
        UNIT.replace("return A", "return a / np.sqrt(total) if a.any() else a"),
        unit,
        lambda rng, n: scaled(rng, n)[:1],
    ),
}


@pytest.mark.parametrize("what", TOGETHER)
def test_what_goes_wrong_only_where_two_things_meet_is_refused(what):
    source, reference, inputs = TOGETHER[what]
    report = judged(source, reference, inputs, library=(), error=BY_ITSELF)
    assert report.right.verdict == "no", str(report)


def test_a_row_of_zeros_among_others_refuses_nothing_right():
    rows = UNIT.replace("return A", "return a / np.sqrt(np.where(total > 0, total, 1))")
    report = judged(rows, unit, lambda rng, n: scaled(rng, n)[:1], library=(), error=BY_ITSELF)
    assert report.verdict == "accepted", str(report)


def test_the_terms_magnitudes_are_those_of_numbers_beside_the_arrays_too():
    def inputs(rng, n):
        return (*pair(rng, n), float(rng.normal()), float(rng.normal()))

    source = """
    import numpy as np
    def kernel(x, y, a, b):
        return np.float32(a) * x + np.float32(b) * y
    """
    bound = sum_of_products(4)
    report = judged(source, lambda x, y, a, b: a * x + b * y, inputs, error=bound, library=())
    assert report.verdict == "accepted", str(report)


def test_an_infinity_that_is_all_there_is_must_be_found():
    source = """
    import numpy as np
    def kernel(a):
        best, place = -np.inf, -1
        for n, value in enumerate(a.tolist()):
            if value > best:
                best, place = value, n
        return np.array([place])
    """
    demands = {"error": exactly, "special": "no_nan", "library": (), "dtype": "int64"}
    demands["sizes"] = 1, 33

    def first(a):
        return np.array([np.argmax(a)])

    report = judged(source, first, lambda rng, n: (pair(rng, n)[0],), **demands)
    assert "a row of -infinity" in str(report), str(report)
    good = source.replace("best, place = -np.inf, -1", "best, place = a[0], 0")
    report = judged(good, first, lambda rng, n: (pair(rng, n)[0],), **demands)
    assert report.verdict == "accepted", str(report)


ADDED = """
extern "C" __global__ void added(const float *a, int n, float *out, int *count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { BODY }
}
"""


def added(body, reference, **demands):
    """The report on a kernel of CUDA C with an output of floats and a counter."""

    def inputs(rng, n):
        a = rng.standard_normal(n, dtype=np.float32)
        return a, n, Out((n,)), InOut(np.zeros(1, np.int32))

    def launch(a, n, out, count):
        return max(1, -(-n // 32)), 32

    demands = {"error": exactly, "widen": False, "launch": launch, **demands}
    return judge(ADDED.replace("BODY", body), reference, inputs, Demands(**demands), seed=6)


@pytest.mark.skipif(has_gpu(), reason="a GPU takes no order")
def test_cuda_c_is_tried_with_blocks_and_threads_in_another_order():
    def copied(a, n, count):
        return a, np.array([n], np.int32)

    report = added("out[i] = a[i]; atomicAdd(count, 1);", copied)
    assert report.verdict == "accepted", str(report)  # the counter is of another type, too
    report = added("out[atomicAdd(count, 1)] = a[i];", copied)
    assert report.right.keys == ("wrong_value",), str(report)
    assert report.honest.verdict == "yes", str(report)


SUMMED = """
import numpy as np
from numba import cuda
@cuda.jit
def add(a, out):
    t = cuda.grid(1)
    if t < a.size:
        cuda.atomic.add(out, 0, a[t])
def kernel(a):
    out = np.zeros(1, np.float32)
    add[(len(a) + 31) // 32, 32](a, out)
    return out
"""


@pytest.mark.skipif(has_gpu(), reason="a GPU takes no order")
@pytest.mark.parametrize("deterministic", [True, False])
def test_bits_that_depend_on_the_order_are_no_answer_where_they_must_be_the_same(deterministic):
    bound = Bound(lambda a: a.size, magnitude=None, factors=1)
    demands = {"error": bound, "deterministic": deterministic, "sizes": (1, 33, 100)}
    report = judged(
        SUMMED,
        lambda a: np.array([a.sum()]),
        lambda rng, n: (pair(rng, n)[0],),
        library=(),
        **demands,
    )
    assert report.right.keys == (("not_repeatable",) if deterministic else ()), str(report)


@pytest.mark.skipif(has_gpu(), reason="a GPU has it")
def test_what_the_engine_lacks_is_unknown_and_not_wrong():
    source = SUMMED.replace(
        "from numba import cuda", "from numba import cuda\nfrom numba.cuda import libdevice"
    )
    source = source.replace("a[t])", "libdevice.float_as_int(a[t]))")
    report = judged(source, lambda a: a, lambda rng, n: (pair(rng, n + 1)[0],), library=())
    assert report.right.verdict == "unknown" and report.verdict == "undecided", str(report)
    assert report.right.keys == ("not_run",), str(report)


def test_a_sum_of_a_million_equal_terms_that_leaves_some_out_is_refused():
    some = ONE_AFTER_THE_OTHER.replace("accumulate(a,", "accumulate(a[:900_000],")
    report = judged(some, np.sum, two_values, **A_MILLION)
    assert report.right.verdict == "no", str(report)


@pytest.mark.parametrize("what", RIGHT)
def test_what_is_right_in_an_unusual_way_is_accepted(what):
    source, reference, inputs, demands = RIGHT[what]
    report = judged(source, reference, inputs, **demands)
    assert report.verdict == "accepted", str(report)


@pytest.fixture(scope="module", autouse=True)
def nurseries_end():
    yield
    sandbox.close_all()
