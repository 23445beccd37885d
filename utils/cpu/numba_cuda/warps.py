"""What the lanes of a warp do together: shuffles, votes, masks. And which lane a thread is."""

import operator
import sys

import numpy as np

from .settings import WARP
from .state import now

FULL = 0xFFFFFFFF


class LaneId:
    """cuda.laneid imported by name: the running thread's lane wherever a number is expected."""

    def __index__(self):
        return now.rank % WARP

    __int__ = __index__

    def __float__(self):
        return float(int(self))

    def __hash__(self):
        return hash(int(self))

    def __repr__(self):
        return str(int(self))


def _forward(name, swapped=False):
    function = getattr(operator, name)
    if swapped:
        return lambda self, other: function(int(other), int(self))
    return lambda self, other: function(
        int(self), int(other) if isinstance(other, LaneId) else other
    )


for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "lshift",
    "rshift",
    "and_",
    "or_",
    "xor",
):
    setattr(LaneId, f"__{_name.strip('_')}__", _forward(_name))
    setattr(LaneId, f"__r{_name.strip('_')}__", _forward(_name, swapped=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(LaneId, f"__{_name}__", _forward(_name))

laneid = LaneId()


def syncwarp(mask=FULL):
    """Wait until every lane in `mask` is here."""
    return now.launch.warp(
        sys._getframe(1), "syncwarp()", mask, None, lambda values: dict.fromkeys(values)
    )


def _shuffle(name, source):
    """A shuffle: lane L receives the value of lane source(L, argument), or keeps its own."""

    def resolve(values):
        results = {}
        for lane, (value, argument) in values.items():
            other = source(lane, argument)
            if not 0 <= other < WARP:
                results[lane] = value
            elif other in values:
                results[lane] = _like(values[other][0], value)
            else:
                results[lane] = undefined(value)
        return results

    def shuffle(mask, value, argument):
        return now.launch.warp(
            sys._getframe(1),
            name + "()",
            mask,
            (value, int(argument)),
            resolve,
        )

    shuffle.__name__ = shuffle.__qualname__ = name
    return shuffle


def _like(value, model):
    return value if type(value) is type(model) else type(model)(value)


def undefined(value):
    """What a shuffle gives from an absent lane: undefined on a GPU, here NaN or 0x4DCDCDCD."""
    if isinstance(value, (float, np.floating)):
        return type(value)("nan")
    return type(value)(0x4DCDCDCD)


shfl_sync = _shuffle("shfl_sync", lambda lane, source: source % WARP)
shfl_up_sync = _shuffle("shfl_up_sync", lambda lane, delta: lane - delta)
shfl_down_sync = _shuffle("shfl_down_sync", lambda lane, delta: lane + delta)
shfl_xor_sync = _shuffle("shfl_xor_sync", lambda lane, mask: lane ^ mask)
shfl_sync.__doc__ = "The value that lane `argument` holds."
shfl_up_sync.__doc__ = "The value of the lane `argument` below; the first lanes keep theirs."
shfl_down_sync.__doc__ = "The value of the lane `argument` above; the last lanes keep theirs."
shfl_xor_sync.__doc__ = "The value of the lane whose number differs in the bits of `argument`."


def _mask_of(values, chosen):
    """The lanes as numba-cuda has them: an int32, so that all of them are -1."""
    mask = sum(1 << lane for lane, value in values.items() if chosen(value))
    return mask - (1 << WARP) if mask >> (WARP - 1) else mask


def _vote(name, result):
    def resolve(values):
        return dict.fromkeys(values, result(values))

    def vote(mask, predicate):
        return now.launch.warp(
            sys._getframe(1),
            name + "()",
            mask,
            bool(predicate),
            resolve,
        )

    vote.__name__ = vote.__qualname__ = name
    return vote


all_sync = _vote("all_sync", lambda values: all(values.values()))
any_sync = _vote("any_sync", lambda values: any(values.values()))
eq_sync = _vote("eq_sync", lambda values: len(set(values.values())) == 1)
ballot_sync = _vote("ballot_sync", lambda values: _mask_of(values, bool))
all_sync.__doc__ = "Whether the predicate is true for all lanes in the mask."
any_sync.__doc__ = "Whether the predicate is true for any lane in the mask."
eq_sync.__doc__ = "Whether the predicate is the same for all lanes in the mask."
ballot_sync.__doc__ = "The mask of lanes for which the predicate is true."


def _match_any(values):
    return {
        lane: _mask_of(values, lambda other, mine=value: other == mine)
        for lane, value in values.items()
    }


def _match_all(values):
    same = len(set(values.values())) == 1
    return dict.fromkeys(values, (_mask_of(values, lambda _: True) if same else 0, same))


def match_any_sync(mask, value):
    """The mask of lanes that hold the same value as this one."""
    return now.launch.warp(
        sys._getframe(1),
        "match_any_sync()",
        mask,
        value,
        _match_any,
    )


def match_all_sync(mask, value):
    """(mask, True) if all lanes in `mask` hold the same value, else (0, False)."""
    return now.launch.warp(
        sys._getframe(1),
        "match_all_sync()",
        mask,
        value,
        _match_all,
    )


def activemask():
    """The mask of lanes that run this call together."""
    return now.launch.converge(sys._getframe(1))


def lanemask_lt():
    """The mask of the lanes below this one."""
    return (1 << (now.rank % WARP)) - 1
