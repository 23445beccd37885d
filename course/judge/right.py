"""Is it right? The calls that are made.

The order matters as little as it can: an answer that is wrong once is wrong. The expected result of
a call is computed after the candidate's answer has come.
"""

import math
import re
import time
from dataclasses import dataclass, field

import numpy as np

from course.judge import cases, desk, sandbox
from course.judge.comparing import Comparison, where
from course.judge.demands import Demands, InOut, Out, beyond, exact
from course.judge.report import Reason, shortened
from course.judge.sandbox import Array, Forged, Lost
from course.judge.values import (
    finite,
    plain_of,
    plain_result,
    poisoned,
    same_bits,
    shapes,
    values_of,
)
from course.judge.words import RIGHT, question_of
from utils import has_gpu

#: Errors of engines and Python -> the key of the reason
ENGINES = {
    "KernelIndexError": "out_of_bounds",
    "UninitializedError": "uninitialized",
    "IndexError": "out_of_bounds",
}
#: What the engine for Triton calls a mistake -> the key
KINDS = {
    "outside": "out_of_bounds",
    "undefined": "uninitialized",
    "race": "race",
    "deadlock": "timeout",
}
#: Errors whose text names the mistake, and words of it -> the key
NAMED = ("LaunchError", "KernelMistake", "KernelError", "BarrierError")
MISTAKES = {
    "[out-of-bounds]": "out_of_bounds",
    "[uninitialised": "uninitialized",
    "[data-race]": "race",
    "[deadlock]": "timeout",
    "race": "race",
    "outside": "out_of_bounds",
    "nobody wrote": "uninitialized",
    "not loaded": "uninitialized",
}
#: What the engines say of a function of the device that they do not have
LACKING = re.compile(
    r"(has no '\w+'|not available|cannot be linked) on the CPU engine|the CPU engine has no \w"
)
#: Calls whose launches are watched access by access, and the threads of such a launch
TRACED = 4
MOST_TRACED = 2048
#: Seconds of a call that can be made many times
QUICK = 0.3
#: Elements of a larger call's arrays; seconds that it may take; elements that never take long
MOST_ELEMENTS = 1 << 22
LONG = 3
SURE = 2048
#: Calls of a size that are made once more before larger ones are left out
AGAIN = 3
#: A larger size is at least so many times the middle one
WORTH = 1.5
ROUND = 32
#: Of the numbers beside the arrays so many are made zero
MOST_BESIDE = 4
#: Seconds of a call that is not made at every size where a loop over blocks may end
EACH = 0.02
#: Arrays whose volume grows by more than this power of the size, so that a few fill the memory
SQUARE = 1.3
#: Rows, each of which may take a block, that are too many for engines of kernels on the CPU
MANY_ROWS = 200
#: Of a long call that is made once more with its accesses watched: seconds, elements, threads
WATCHED = 1.0
MOST_WATCHED = 20_000
MANY_TRACED = 10_240


@dataclass
class Tried:
    """One call: what was given, what came, what was expected, and what was noted."""

    label: str
    size: object
    arguments: tuple
    got: object = None
    expected: object = None
    launch: tuple | None = None
    notes: dict = field(default_factory=dict)
    reason: Reason | None = None
    also: Reason | None = None  # what is wrong besides the values
    seconds: float = 0.0  # by the clock, the way there and back included
    drawn: bool | None = None  # whether its size was drawn, or named by the task

    def rename(self, key):
        """Say of a wrong result what it is, by another key."""
        self.reason = self.reason.under(key)


class Trials:
    """All calls of one candidate."""

    def __init__(self, box, reference, inputs, demands, seed):
        self.box, self.inputs, self.demands = box, inputs, demands
        self.comparison = Comparison(reference, demands)
        self.rng = np.random.default_rng(seed)
        self.done = []
        self.dead = False
        self.base, self.size, self.counted, self.narrow = None, None, (), None
        self.ruled_out = {}
        self.has_kernels = True  # whether the candidate may launch any
        self.returns_copy = False  # of a result, which the judge had overwritten
        self.by_size = True  # what is wrong for drawn sizes alone is so in a first call, too
        #: two calls with the same values each: the second at another time, or with a counter
        #: as it will be after many calls
        self.by_the_clock, self.by_the_counter = (), ()

    @property
    def reasons(self):
        """The reasons of all calls so far, each key once."""
        found = {}
        for one in self.done:
            for reason in filter(None, (one.reason, one.also)):
                found.setdefault(reason.key, reason)
        first = self.wrong_when_drawn()
        if self.by_size and first:
            found = {"only_sizes": first.reason.under("only_sizes"), **found}
        return list(found.values())

    def wrong_when_drawn(self):
        """The first wrong call of a drawn size, where all sizes that the task names are right."""
        named = [one for one in self.done if one.drawn is False]
        bad = [one for one in self.done if one.drawn and one.reason is not None]
        if bad and bad[0].reason.key == "wrong_value" and not any(one.reason for one in named):
            return bad[0]
        return None

    def draw(self, size):
        """Inputs of a size, anew."""
        drawn = self.inputs(self.rng, size)
        return tuple(drawn) if isinstance(drawn, tuple | list) else (drawn,)

    def call(self, label, size, arguments, slot=None, unusual=False, **how):
        """Make one call and judge its result: a Tried.

        unusual: of values that are seldom drawn: a wrong result has another reason then.
        """
        tried = Tried(label, size, arguments)
        self.make(tried, slot, how)
        if tried.reason is not None and tried.reason.key == "wrong_value":
            bad = [one for one in self.done if one is not tried and one.reason is not None]
            simpler = any(one.drawn is not None or one.reason.key == "stale" for one in bad)
            if self.seen_before(tried):
                tried.rename("stale")
            elif unusual and not simpler:
                tried.rename("only_values")
        return tried

    def elsewhere(self, box):
        """The same task for another process, in which calls are made once more."""
        other = Trials(box, self.comparison.reference, self.inputs, self.demands, 0)
        other.comparison = self.comparison
        return other

    def once_more(self, tried, label=None, **how):
        """The same call in this process, a Tried: the same values, launch, expected result."""
        again = Tried(label or tried.label, tried.size, tried.arguments)
        again.launch, again.expected = tried.launch, tried.expected
        self.make(again, None, how)
        return again

    def make(self, tried, slot, how):
        """Make a call, and compare what comes with what is expected."""
        arguments = tried.arguments
        self.done.append(tried)
        if self.dead:
            return
        begin = time.monotonic()
        try:
            header, buffers = self.box.ask("call", **self.message(tried, slot, how))
        except Lost as lost:
            self.dead = True
            tried.reason = self.lost(lost, tried)
            return
        except Forged as forged:
            self.dead = True
            tried.reason = Reason.of("forged", f"{forged}.")
            return
        tried.seconds = time.monotonic() - begin
        try:
            if "error" in header:
                tried.reason = self.failed(sandbox.error_of(header), tried)
                return
            tried.notes = sandbox.notes_of(header)
            tried.got = sandbox.unpacked(header.get("result"), buffers)
            if sum(isinstance(one, Out | InOut) for one in arguments) == 1:
                tried.got = sandbox.only(tried.got)
        except Forged as forged:
            tried.reason = Reason.of("forged", f"{forged}.")
            return
        if tried.expected is None:
            tried.expected = self.comparison.expected(arguments)
        tried.also = self.noted(tried)
        tried.reason = self.comparison.of(tried) or tried.also

    def all(self):
        """Every call that is made."""
        self.ordinary()
        self.size = self.middle()
        self.same_place()
        self.again()
        self.fewer_digits()
        if any(one.reason for one in self.done if one.drawn is not None):
            return  # wrong for ordinary inputs: the rest would say it again
        self.hostile()
        self.special()
        self.orders()
        self.laws()
        self.views()
        self.elsewhen()
        self.late()
        self.larger()

    def ordinary(self):
        """The sizes that the task names, and drawn ones, in an order of chance."""
        drawn = [self.demands.fresh(self.rng) for _ in range(self.demands.calls)]
        sizes = [*((size, False) for size in self.demands.sizes), *((size, True) for size in drawn)]
        if self.demands.fresh is Demands.fresh:
            sizes.append((ROUND * int(self.rng.integers(4, 9)), True))  # whole warps and tiles
            sizes += [(2, True), (3, True)]
        self.rng.shuffle(sizes)
        for size, is_drawn in sizes:
            spoil = bool(self.rng.random() < 0.5)
            races = self.watched_threads()
            tried = self.call("", size, self.draw(size), spoil=spoil, races=races)
            tried.drawn = is_drawn

    def watched_threads(self):
        """Launches of how many threads are watched for races in the next call: 0 for none."""
        traced = sum(bool(one.notes.get("launches")) for one in self.done)
        return MOST_TRACED * (self.demands.race_free and traced < TRACED)

    def late(self):
        """Arguments whose values come only after the call was made, by work that was asked for
        before: on a GPU a call need not wait for that, but its kernels must.
        """
        if self.dead or not has_gpu() or self.demands.launch:
            return
        label = "values that another kernel still writes"
        tried = self.call(label, self.size, self.of_one_shape(), late=True)
        if tried.reason is not None and question_of(tried.reason.key) == RIGHT:
            tried.rename("does_not_wait")

    def middle(self):
        """The size of the largest call so far that took little time."""
        quick = [one for one in self.done if one.seconds < QUICK] or self.done
        return max(quick, key=volume).size

    def same_place(self):
        """Other values at the same addresses, and values that are nearly the same."""
        for number in range(2):
            label = "other values at the same addresses" if number else ""
            self.call(label, self.size, self.of_one_shape(), slot="a")
        base = self.base
        if not self.demands.hostile:
            for _ in range(2):
                self.call("other values at the same addresses", self.size, self.of_one_shape(), "a")
            return
        for words, change in (
            ("one number changed", cases.one_changed),
            ("two numbers swapped", cases.two_swapped),
            ("one number changed", cases.one_changed),
        ):
            other = change(self.rng, base)
            if other is not None:
                self.call(words, self.size, other, slot="a", unusual=True)

    def of_one_shape(self):
        """Drawn inputs whose arrays have the shapes of the first ones drawn here."""
        drawn = self.draw(self.size)
        if self.base is None:
            self.base = drawn
        for _ in range(40):
            if shapes(drawn) == shapes(self.base):
                break
            drawn = self.draw(self.size)
        if shapes(drawn) != shapes(self.base):
            drawn = cases.mapped(
                self.base, lambda array: self.rng.permutation(array.ravel()).reshape(array.shape)
            )
        self.base = drawn
        return drawn

    def again(self):
        """The same values again, counted: the same work must be done, with the same result."""
        self.call("", self.size, self.of_one_shape(), keeping=True)
        values = self.of_one_shape()
        # of what launches kernels the launches are counted, of what does not its own steps
        how = {"lines": not self.done[-1].notes.get("launches"), "spoil": True, "keeping": True}
        first = self.call("values of the same shape", self.size, values, **how)
        copies = tuple(map(cases.copied, values))
        second = self.call("the same values again", self.size, copies, **how)
        third = self.call("the same values again", self.size, copies, **how)
        self.counted = first, second, third
        if first.notes.get("copy"):
            copy = self.call("the same values again", self.size, copies, overwrite=True)
            self.done.remove(
                copy
            )  # what is wrong now is the judge's doing, and shows who returns it
            self.returns_copy = copy.got is not None and copy.reason is not None
        if all(one.notes.get("heap") for one in self.counted) and third.reason is None:
            count, label = third.notes["heap"], where(third)
            third.reason = Reason.of("leaks", f"{label}: {count} block(s) of memory.")
        if self.demands.deterministic and first.reason is None and second.reason is None:
            self.same_twice(first, second)

    def same_twice(self, first, second):
        """Give the second of two calls with the same values a reason, if its bits are others."""
        if not same_bits(first.got, second.got):
            says = f"{where(second)}: its bits differ from those of the call before."
            second.reason = Reason.of("not_repeatable", says)

    def elsewhen(self):
        """The same values at another time, and as the call of a high number.

        What reads a clock or counts calls may have a reason; what does something else then, shows.
        """
        asked = any(one.notes.get("asked") for one in self.done)
        counter = self.counted[-1].notes.get("counts") if self.counted else ""
        if self.dead or not asked and not counter:
            return
        values = self.of_one_shape()
        how = {"lines": not self.done[-1].notes.get("launches")}
        self.call("", self.size, values, **how)  # what is kept of it, is kept for all of these
        again = tuple(map(cases.copied, values))
        now = self.call("the same values again", self.size, again, **how)
        if asked:
            label = "the same values at another time"
            then = self.call(label, self.size, again, another_time=True, **how)
            self.by_the_clock = now, then
        if counter:
            label = f"the same values and `{counter}` as after many calls"
            then = self.call(label, self.size, again, advance=counter, **how)
            # it could not be set; or it is a place in a list, perhaps: that it fails, says nothing
            if then.got is None or not then.notes["advanced"]:
                self.done.remove(then)
            else:
                self.by_the_counter = now, then

    def larger(self):
        """Sizes far beyond the others, one after the other, as far as time allows.

        Each is tried if it is small, or if it takes little time, by what the last one took.
        """
        known = [one for one in self.done if one.size == self.size and one.seconds]
        if not self.demands.large or not known or self.dead:
            return
        last, earlier, long = min(known, key=lambda one: one.seconds), None, []
        timed_again = None
        for size in self.larger_sizes():
            tried = Tried("", size, self.draw(size), drawn=True)
            times = max(1, volume(tried)) / max(1, volume(last))
            many = isinstance(size, tuple) and size[0] > MANY_ROWS
            if volume(tried) > MOST_ELEMENTS or many and known[0].notes.get("launches"):
                continue
            is_long = volume(tried) > SURE
            if is_long and last.seconds * times ** growth(earlier, last) > LONG:
                if timed_again is not last and last.seconds < QUICK:
                    timed_again = last  # something else may have used the machine
                    if not self.time_again(last):
                        return
                if last.seconds * times ** growth(earlier, last) > LONG:
                    continue
            self.make(tried, None, {})
            if tried.reason is not None and "MemoryError" in tried.reason.says:
                self.done.remove(tried)
            if tried.reason is not None:
                return
            if times > WORTH:
                earlier, last = last, tried
            long.append(tried)
        self.long_and_unusual(long)
        self.long_and_watched(long)
        self.long_and_reordered(long)

    def time_again(self, tried):
        """Make more calls of a size, whose quickest tells its time; whether all are right."""
        for _ in range(AGAIN):
            again = Tried("", tried.size, self.draw(tried.size), drawn=True)
            self.make(again, None, {})
            if again.reason is not None:
                return False
            tried.seconds = min(tried.seconds, again.seconds)
        return True

    def long_and_unusual(self, long):
        """Values that are seldom drawn, where the last axis is longest and the call is quick."""
        quick = [one for one in long if one.seconds < QUICK]
        if quick and self.demands.hostile:
            longest = max(quick, key=columns)
            ties = cases.TIES if self.is_exact(longest) else {}
            for words, change in (cases.FOR_LONG | ties).items():
                self.changed(words, change, longest.size)
            for words, change in cases.WHOLE.items():
                self.changed(words, change, longest.size, cases.is_whole)

    def long_and_watched(self, long):
        """The longest quick call once more, its accesses watched for races: a kernel may be another
        one there than for the small sizes.
        """
        watched = [
            one
            for one in long
            if one.notes.get("launches") and one.seconds < WATCHED and volume(one) <= MOST_WATCHED
        ]
        if watched and self.demands.race_free and not self.dead:
            size = max(watched, key=volume).size
            self.call("", size, self.draw(size), races=MANY_TRACED)

    def long_and_reordered(self, long):
        """A long call twice, once with its many blocks in another order: where results are added up
        as blocks come, the bits differ, which few blocks may not show.
        """
        quick = [one for one in long if one.notes.get("launches") and one.seconds < QUICK]
        if quick and self.demands.deterministic and not (self.dead or has_gpu()):
            size = max(quick, key=volume).size
            values = self.draw(size)
            plain = self.call("", size, values)
            label = "threads in another order"
            tried = self.call(label, size, tuple(map(cases.copied, values)), order=1)
            if not (plain.reason or tried.reason):
                self.same_twice(plain, tried)

    def larger_sizes(self):
        """The sizes that the task names for this, or lengths; none whose arrays are too large."""
        if callable(self.demands.large):
            return self.demands.large(self.rng)
        numbers = [one for one in self.done if is_number(one.size) and one.size and volume(one)]
        if not is_number(self.size) or not numbers:
            return []
        small, large = (end(numbers, key=lambda one: one.size) for end in (min, max))
        power = 1.0
        if large.size > small.size:
            growth = math.log(volume(large) / volume(small)) / math.log(large.size / small.size)
            power = min(max(growth, 1.0), 4.0)
        most = int(large.size * (MOST_ELEMENTS / 4 / volume(large)) ** (1 / power))
        sizes = sorted({min(size, most) for size in beyond(self.rng)})
        sizes = [size for size in sizes if size > WORTH * self.size]
        dear = power > SQUARE or min(one.seconds for one in self.done if one.seconds) > EACH
        tried = {one.size for one in self.done}
        ends = [size for size in exact(self.rng, dear) if size <= most and size not in tried]
        # what longer ones left: of two neighbours one at least is no whole number of blocks
        shorter = [size - step for size in sizes[-2:-1] for step in (1, 2)]
        return sorted({*sizes, *ends}) + shorter

    def hostile(self):
        """Values that are seldom drawn; left out where the reference itself gives no number."""
        if not self.demands.hostile:
            return
        changes = dict(cases.HOSTILE)
        bound = self.demands.error
        if bound is not None and not isinstance(bound.magnitude, str):
            changes |= cases.FAR  # how wrong a result may be then, only a model of the terms says
        if bound is None or not bound.as_drawn:
            changes |= cases.SORTED
        if self.is_exact(self.done[-1]):
            changes |= cases.CLOSE
        for words, change in changes.items():
            self.changed(words, change, self.size)
        for words, change in cases.WHOLE.items():
            self.changed(words, change, self.size, cases.is_whole)
        for words, factor in cases.FACTORS.items():
            self.called_if_finite(words, self.size, cases.scaled(self.draw(self.size), factor))
        self.numbers_beside()
        self.changed("some special rows", cases.special_rows, self.size, cases.has_rows)

    def numbers_beside(self):
        """Zero for each number beside the arrays, and other numbers there with other arrays."""
        places = cases.beside(self.draw(self.size))
        for number in places[:MOST_BESIDE]:
            words = f"zero for the number that is argument {number}"
            self.called_if_finite(words, self.size, cases.scaled(self.draw(self.size), 0, number))
        for words, (change, factor) in cases.TOGETHER.items() if places else ():
            drawn = self.draw(self.size)
            with np.errstate(all="ignore"):
                drawn = cases.mapped(drawn, change)
            self.called_if_finite(words, self.size, cases.scaled(drawn, factor))

    def is_exact(self, tried):
        """Whether what is expected of a call is not rounded."""
        kind = getattr(getattr(tried.expected, "dtype", None), "kind", "")
        return kind in ("b", "i", "u") or bool(self.demands.error and self.demands.error.exact)

    def changed(self, words, change, size, kind=cases.is_float):
        """A call with drawn values that are changed, where its result is finite.

        kind: of the arguments that are changed; whole numbers only where no other array is read,
        as they may be places in it.
        """
        drawn = self.draw(size)
        is_alone = sum(map(cases.is_read, drawn)) == 1
        if any(map(kind, drawn)) and (kind is not cases.is_whole or is_alone):
            with np.errstate(all="ignore"):
                arguments = cases.mapped(drawn, change, kind=kind)
            self.called_if_finite(words, size, arguments)

    def called_if_finite(self, words, size, arguments):
        """A call with values that are seldom drawn, if there are any and its result is finite."""
        if arguments is not None and self.is_usable(arguments):
            self.call(words, size, arguments, unusual=True)

    def is_usable(self, arguments):
        """Whether values that are seldom drawn have a finite result, by the reference."""
        with np.errstate(all="ignore"):
            try:
                return finite(arguments) and finite(self.comparison.expected(arguments))
            except Exception:  # it does not take such values
                return False

    def is_number(self, arguments):
        """Whether a result is a number everywhere, by the reference."""
        with np.errstate(all="ignore"):
            try:
                expected = self.comparison.expected(arguments)
            except Exception:
                return False
        parts = expected if isinstance(expected, tuple) else (expected,)
        kinds = [getattr(getattr(one, "dtype", None), "kind", "") for one in parts]
        return not any(
            kind in "fc" and np.isnan(one).any()
            for kind, one in zip(kinds, parts, strict=True)
            if kind
        )

    def special(self):
        """Infinity, NaN, -0 and the smallest numbers in one array after the other."""
        fill = cases.SPECIAL.get(self.demands.special)
        drawn = self.draw(self.size)
        for number in cases.floats(drawn) if fill else ():
            arguments = cases.mapped(self.draw(self.size), lambda a: fill(a, self.rng), number)
            self.call("infinity, NaN and -0", self.size, arguments, unusual=True)
            arguments = cases.mapped(self.draw(self.size), cases.masked, number)
            self.call("-infinity in many places", self.size, arguments, unusual=True)
            arguments = cases.mapped(self.draw(self.size), cases.all_masked, number)
            if self.is_number(arguments):
                self.call("a row of -infinity", self.size, arguments, unusual=True)

    def orders(self):
        """Other orders of threads and programs, where an engine runs them."""
        if not any(one.notes.get("launches") for one in self.done):
            return
        small = [one.size for one in self.done if one.notes.get("launches")][:1]
        values = self.draw(self.size)
        plain = self.call("", self.size, values)
        for order in (1, 2, 3):
            size, label = self.size, "threads in another order"
            given = tuple(map(cases.copied, values))
            if order == 3:
                size, given = small[0], self.draw(small[0])
            tried = self.call(label, size, given, order=order)
            if order != 3 and self.demands.deterministic and not (plain.reason or tried.reason):
                self.same_twice(plain, tried)

    def views(self):
        """Arrays that lie in other ways. Kernels may count on where an allocation begins."""
        ways = {} if self.has_kernels else desk.PLACES
        ways |= desk.VIEWS if self.demands.strided else {}
        for words in ways:
            tried = self.call(words, self.size, self.draw(self.size), strided=words)
            self.rename_wrong(tried, "strided")
        self.same_array()

    def same_array(self):
        """The same array for two arguments, where any numbers may stand in both."""
        arguments = list(map(cases.copied, self.draw(self.size)))
        pair = cases.exchangeable(arguments) if self.demands.hostile else None
        if pair is None:
            return
        arguments[pair[1]] = arguments[pair[0]]
        if self.is_usable(tuple(arguments)):
            label = "one array for two arguments"
            apart = self.call(label, self.size, tuple(arguments))
            tried = self.call(label, self.size, tuple(arguments), same=pair)
            if apart.reason is None:
                self.rename_wrong(tried, "same_array")

    def rename_wrong(self, tried, key):
        """Say of a wrong result what it comes from."""
        if tried.reason is not None and tried.reason.key in ("wrong_value", "imprecise"):
            tried.rename(key)

    def laws(self):
        """The properties that were demanded."""
        for law in self.demands.properties:
            arguments = self.draw(self.size)
            before = self.call("", self.size, arguments)
            others = law.change(self.rng, arguments)
            after = self.call(law.name, self.size, others)
            if before.got is None or after.got is None or before.reason or after.reason:
                continue
            must = law.then(values_of(before.got), arguments)
            must = plain_result(must)
            reason = self.comparison.difference(after.got, must, after, law.exact)
            if reason is not None:
                says = f"{where(after)}: {reason.says.partition(': ')[2]}"
                after.reason = Reason.of("property", says, reason.evidence)

    def fewer_digits(self):
        """Values of fewer bits: whose result is the same as for all bits has not read them."""
        if not self.demands.hostile:
            return
        values = self.of_one_shape()
        full = self.call("", self.size, values)
        for words, change in cases.FEWER.items():
            arguments = cases.mapped(values, change)
            other = self.call(f"values rounded to {words}", self.size, arguments)
            if any(one.reason and one.reason.key != "imprecise" for one in (full, other)):
                continue
            if full.expected is None or other.expected is None or not isinstance(other.got, Array):
                continue
            if (
                other.got.dtype == "float32"
                and full.expected.shape
                and same_bits(full.got, other.got)
            ):
                with np.errstate(all="ignore"):
                    apart = np.abs(full.expected - other.expected) > 2.0**-22 * np.abs(
                        full.expected
                    )
                if apart.size and apart.mean() > 0.5:
                    self.narrow = words

    def seen_before(self, tried):
        """Whether a wrong result is, bit by bit, an earlier one that was right for other values.

        One number alone, or many that are equal or no numbers, may come twice by themselves.
        """
        if not isinstance(tried.got, Array) or tried.got.values.size < 2:
            return False
        values = tried.got.values.astype(np.float64)
        if not np.all(np.isfinite(values)) or np.ptp(values) == 0:
            return False
        earlier = (one for one in self.done if one is not tried and one.reason is None)
        return any(same_bits(one.got, tried.got) for one in earlier if one.got is not None)

    def message(self, tried, slot, how):
        """The worker's message for one call."""
        arguments = tried.arguments
        given, outputs = [], []
        for number, one in enumerate(arguments):
            if isinstance(one, Out | InOut):
                outputs.append(number)
            given.append(sandbox.pack(self.filled(one)))
        demands = self.demands
        plain = tuple(map(plain_of, arguments))
        if demands.launch and tried.launch is None:
            tried.launch = demands.launch(*plain)
        names = ("strided", "lines", "races", "spoil", "keeping", "another_time", "overwrite")
        options = dict.fromkeys(names, False)
        return {
            "arguments": given,
            "outputs": outputs,
            "slot": slot,
            "launch": tried.launch,
            "poison": True,
            "order": None,
            "advance": "",
            "leftover": slot is not None,
            "late": False,
            "same": None,
            "device_arrays": demands.launch is not None and has_gpu(),
            **options,
            **how,
        }

    def filled(self, argument):
        """What a candidate is given for an argument: poison where it is to write."""
        return poisoned(argument, self.rng) if isinstance(argument, Out) else plain_of(argument)

    # -- what a call shows

    def lost(self, lost, tried):
        """The reason for a process that ended or did not answer."""
        if lost.how == "timeout":
            seconds = self.demands.seconds
            says = f"{where(tried)}: it was ended after {seconds:g} seconds of work."
            return Reason.of("timeout", says)
        says = f"{where(tried)}: its process ended ({ending(lost.status)})."
        return Reason.of("crashed", says)

    def failed(self, error, tried):
        """The reason for an error that a call raised."""
        key = KINDS.get(error["kind"]) or ENGINES.get(error["type"], "crashed")
        text = error["says"]
        if not has_gpu() and LACKING.search(text):
            key = "not_run"
        elif error["type"] in NAMED:
            key = next((one for word, one in MISTAKES.items() if word in text.lower()), key)
        line = f" ({error['line']})" if error["line"] else ""
        first = shortened(text)
        return Reason.of(key, f"{where(tried)}: {error['type']}{line}: {first}")

    def noted(self, tried):
        """The reason for what else a call did, or None."""
        notes, demands = tried.notes, self.demands
        if notes.get("aliases") and not demands.may_alias:
            says = (
                f"{where(tried)}: the result lies in the memory of argument {notes['aliases'][0]}."
            )
            return Reason.of("aliases", says)
        if notes["changed"] and not demands.may_mutate:
            number = notes["changed"][0]
            says = f"{where(tried)}: argument {number} is not what it was before the call."
            return Reason.of("mutates_input", says)
        if notes["outside"]:
            says = f"{where(tried)}: it writes beside argument {notes['outside'][0]}."
            return Reason.of("out_of_bounds", says)
        if notes.get("overwritten") and not demands.may_alias:
            says = f"{where(tried)}: the result of an earlier call was overwritten."
            return Reason.of("aliases", says)
        if notes["problems"]:
            says = shortened(notes["problems"][0])
            return Reason.of("race", f"{where(tried)}: {says}")
        return None


def is_number(size):
    """Whether a size is a whole number."""
    return isinstance(size, int | np.integer)


def ending(status):
    """How a process ended, in words."""
    if status < 0:
        import signal

        return f"signal {signal.Signals(-status).name}"
    return "it ended itself"


def volume(tried):
    """How many elements a call's arrays have."""
    return sum(int(np.prod(shape[1])) for shape in shapes(tried.arguments) if type(shape) is tuple)


def growth(before, after):
    """The power of the number of elements by which calls take longer, by two of them."""
    if before is None:
        return 1.0
    times = max(1, volume(after)) / max(1, volume(before))
    return max(1.0, math.log(after.seconds / before.seconds) / math.log(times))


def columns(tried):
    """The length of the longest last axis of a call's arrays."""
    found = [shape[1] for shape in shapes(tried.arguments) if type(shape) is tuple and shape[1]]
    return max((shape[-1] for shape in found), default=0)
