"""Instructions of statements, read from the source of a kernel."""

import math

import numpy as np
import pytest
from numba import cuda, float32

from utils.estimate import Blank, Launch, Unknown, estimate, operations
from utils.estimate.operations import statements_of

TURNS = 4
ARRAY = ("global", "fp32")


@cuda.jit
def arithmetic(out, a, n):
    i = cuda.grid(1)
    x = a[i]
    y = x * x + x
    z = x / y
    w = math.exp(x)
    out[i] = y + z + w
    q = i % n
    r = i % 8
    out[q] = out[r]


@cuda.jit
def loops(out, a, n):
    total = float32(0)
    for k in range(TURNS):
        total += a[k]
    for k in range(n):
        total += a[k]
    step = 1
    while step < TURNS:
        total += step
        step *= 2
    out[0] = total


@cuda.jit(device=True)
def twice(value):
    return value + value


@cuda.jit
def calls(out, a):
    out[0] = twice(a[0])


@cuda.jit
def gathers(out, table, places):
    i = cuda.grid(1)
    place = places[i]
    out[i] = table[place]


array = cuda.shared.array


@cuda.jit
def by_short_name(out):
    tile = array(32, float32)
    tile[0] = 1.5
    out[0] = tile[0]


lambdas = [cuda.jit(lambda out: None)]


def by_text(kernel, types):
    """Text of a line -> Statement."""
    function = kernel.py_func
    lines = open(function.__code__.co_filename, encoding="utf-8").read().splitlines()
    found = statements_of(function, types)
    return {lines[line - 1].strip(): statement for (_, line), statement in found.items()}


def test_floats_are_counted_by_kind():
    found = by_text(arithmetic, {"out": ARRAY, "a": ARRAY, "n": "integer"})
    assert found["y = x * x + x"].classes == {"fp32": 1}  # one multiply-add
    assert found["z = x / y"].classes == {"fp32": operations.FLOAT_DIVISION, "special": 1}
    assert found["w = math.exp(x)"].classes["special"] == 1
    assert found["w = math.exp(x)"].classes["fp64"] == 0


def test_an_array_by_a_short_name_is_one_of_shared_memory():
    found = by_text(by_short_name, {"out": ARRAY})
    assert found["tile[0] = 1.5"].classes["integer"] == 0
    assert not found["out[0] = tile[0]"].gathers


def test_of_a_lambda_there_is_no_estimate():
    with pytest.raises(Unknown, match="source is not to be had"):
        estimate(Launch(lambdas[0], 1, 32, (Blank(32),)))


def test_a_remainder_of_what_is_not_known_costs_a_sequence():
    found = by_text(arithmetic, {"out": ARRAY, "a": ARRAY, "n": "integer"})
    known, unknown = found["r = i % 8"].classes, found["q = i % n"].classes
    assert sum(known.values()) < sum(unknown.values()) / 2
    assert unknown["special"] == 1 and known["special"] == 0


def test_loops_of_known_length_count_nothing_of_themselves():
    found = by_text(loops, {"out": ARRAY, "a": ARRAY, "n": "integer"})
    lines = [line for line in found if line.startswith("total += a[k]")]
    assert len(lines) == 1  # two lines of one text: the later one stands, of the loop of n
    assert found["total += a[k]"].classes["integer"] >= operations.LOOP
    assert not +found["while step < TURNS:"].classes
    assert not found["for k in range(TURNS):"].decides
    assert found["for k in range(n):"].decides
    assert not +found["step *= 2"].classes


def test_an_index_is_computed_once():
    found = by_text(arithmetic, {"out": ARRAY, "a": ARRAY, "n": "integer"})
    assert found["x = a[i]"].classes["integer"] >= operations.INDEX
    assert found["out[i] = y + z + w"].classes["integer"] == operations.INDEX  # another array


def test_device_functions_are_read_with_the_types_of_their_arguments():
    found = by_text(calls, {"out": ARRAY, "a": ARRAY})
    assert found["return value + value"].classes == {"fp32": 1}


def test_arrays_whose_index_comes_from_memory_are_named():
    found = by_text(gathers, {"out": ARRAY, "table": ARRAY, "places": ("global", "integer")})
    assert found["out[i] = table[place]"].gathers == {"table"}
    assert found["place = places[i]"].gathers == frozenset()


def test_types_of_arguments():
    of = operations.type_of_argument
    assert of(np.zeros(3, np.float32)) == ("global", "fp32")
    assert of(np.zeros(3)) == ("global", "fp64")
    assert of(np.float32(1)) == "fp32"
    assert of(1.0) == "fp64"
    assert of(np.int32(1)) == "int32"
    assert of(1) == "integer"
    assert operations.joined("integer", "fp32") == "fp64"  # as Numba has it
