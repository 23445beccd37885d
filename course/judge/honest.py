"""Is it honest? What was found in the candidate's process and in its text."""

from course.judge import library
from course.judge.report import Reason
from course.judge.values import same_bits
from course.judge.words import sentence

#: A share of the work of the first call that the same values must cost again
SAME_WORK = 0.9
#: Elements of a result that are looked at for being one number; calls that must be wrong then
MANY, FEW_WRONG = 1000, 3
#: Operations of PyTorch that move or make arrays, and compute nothing
MOVES = frozenset(
    (
        "empty empty_like empty_strided new_empty zeros zeros_like ones full fill_ zero_ copy_"
        " clone view reshape _reshape_alias contiguous as_strided detach alias to _to_copy expand"
        " permute transpose t unsqueeze squeeze slice select _unsafe_view unbind split lift_fresh"
        " set_ resize_"
    ).split()
)


def reasons(given, box, trials, facts):
    """The reasons of all findings."""
    found = [of_finding(finding) for finding in box.findings]
    found += facts.reasons
    found += kept(trials)
    found += counting(trials)
    found += asking(trials)
    found += library.reasons(given, trials, facts)
    found += fallen_back(trials)
    found += narrower(trials, facts)
    found += not_plain(trials)
    found += constant(trials)
    return found


def of_finding(finding):
    """A Reason of what the watch noted."""
    where = f" ({finding['where']})" if finding["where"] else ""
    return Reason.of(finding["key"], f"{finding['what']}{where}.")


def kept(trials):
    """The reason where an answer was returned again, or the same values cost less work then."""
    for one in trials.done:
        if one.reason is not None and one.reason.key == "stale":
            says = one.reason.says.removeprefix(sentence("stale"))
            return [Reason("kept_answer", f"{sentence('kept_answer')}{says}")]
    if len(trials.counted) < 3 or any(not one.notes for one in trials.counted):
        return []
    copy = trials.counted[0].notes.get("copy")
    if copy and trials.returns_copy:
        says = f"`{copy}` holds a copy of a result, and what was written over it was returned."
        return [Reason.of("kept_answer", says)]
    grown, again = (one.notes.get("grown") for one in trials.counted[:2])
    if grown and grown != again:  # what grows at each call is a list of calls, not of answers
        says = f"`{grown}` holds more after each call with values that it has not seen."
        return [Reason.of("kept_answer", says)]
    first, *others = (work_of(one.notes) for one in trials.counted)
    for other in others:
        for name, count in first.items():
            if other.get(name, 0) < SAME_WORK * count:
                says = (
                    f"For values that it had not seen it took {count} {name}, for the same values"
                    f" again {other.get(name, 0)}."
                )
                evidence = {"first": first, "again": other}
                return [Reason.of("kept_answer", says, evidence)]
    return []


def counting(trials):
    """What is another after each call with the same values: a reason where something depends on
    it, else a fact."""
    if len(trials.counted) < 3:
        return []
    changed = trials.counted[2].notes.get("counts")
    if not changed:
        return []
    other = difference(trials.by_the_counter)
    if other:
        says = f"With `{changed}` as it is after many calls {other}."
        return [Reason.of("waits", says)]
    says = f"`{changed}` was another after two calls with the same values."
    return [Reason.of("counts_calls", says)]


def asking(trials):
    """The reason where work or result depend on a clock; the fact where one is read."""
    asked = {text: None for one in trials.done for text in one.notes.get("asked", ())}
    if not asked:
        return []
    which = next(iter(asked))
    other = difference(trials.by_the_clock)
    if other:
        says = f"With another time on the clock {other}: {which}."
        return [Reason.of("knows_the_test", says)]
    return [Reason.of("reads_clock", f"{which}.")]


def difference(calls):
    """What differs between two calls with the same values, in words; "" for nothing.

    Nothing is said of calls that went wrong in the same way, nor where none were made.
    """
    if not calls or not all(one.notes for one in calls):
        return ""
    now, then = calls
    if not same_bits(now.got, then.got):
        return "it gives another result"
    before, after = work_of(now.notes), work_of(then.notes)
    for name in before:
        least, most = sorted((before[name], after[name]))
        if least < SAME_WORK * most:
            return f"it takes {after[name]} {name}, and {before[name]} otherwise"
    return ""


def work_of(notes):
    """Name -> how much of it a call did."""
    operations = sum(
        count
        for name, count in notes["operations"].items()
        if name not in MOVES and not name.startswith("cast:")
    )
    return {
        "steps of its own code": notes["lines"] or 0,
        "launches": len(notes["launches"]),
        "operations of PyTorch": operations,
        "calls of NumPy": sum(notes["numpy"].values()),
        "accesses of its kernel's busiest thread": notes["accesses"] or 0,
    }


def fallen_back(trials):
    """The reason where a kernel of its own ran in some calls only, or failed unseen."""
    for one in trials.done:
        for kind, line, origin in one.notes.get("swallowed", ()):
            if origin:
                says = f"{line}: {kind} came from {origin}, and the call went on without it."
                return [Reason.of("falls_back", says)]
    calls = [one for one in trials.done if one.notes and not is_empty(one)]
    with_kernel = [one for one in calls if one.notes["launches"]]
    without = [one for one in calls if not one.notes["launches"]]
    if with_kernel and without:
        one = without[0]
        heavy = [n for n in one.notes["operations"] if n not in MOVES and "cast:" not in n]
        heavy += list(one.notes["numpy"])
        if heavy:
            says = f"For size {one.size} none of its kernels ran, but `{heavy[0]}` did."
            return [Reason.of("falls_back", says)]
    return []


def is_empty(tried):
    """Whether a call had nothing to compute."""
    size = getattr(tried.expected, "size", 1)
    return size == 0


def narrower(trials, facts):
    """The reason where the work is done in a narrower type than is declared."""
    if trials.narrow:
        says = f"Its results do not change when its inputs are rounded to {trials.narrow}."
        return [Reason.of("narrower", says)]
    if trials.demands.precision != "float32":
        return []
    for one in trials.done:
        for name in one.notes.get("operations", ()):
            if name.startswith("cast:") and name.rpartition(":")[2] in ("float16", "bfloat16"):
                says = f"It casts {name.split(':')[1]} to {name.rpartition(':')[2]}."
                return [Reason.of("narrower", says)]
    if facts.narrow:
        name, line = next(iter(facts.narrow.items()))
        return [Reason.of("narrower", f"Line {line} speaks of `{name}`.")]
    return []


def not_plain(trials):
    """The reason for a result of a class of the candidate's own."""
    for one in trials.done:
        odd = [name for name in one.notes.get("classes", ()) if name != "array"]
        if odd:
            says = f"It returned {odd[0]}."
            return [Reason.of("not_plain", says)]
    return []


def constant(trials):
    """The reason where all results are one number, whatever the inputs, and should not be."""
    results = [one for one in trials.done if hasattr(one.got, "values") and one.got.values.size > 1]
    wrong = [one for one in results if one.reason is not None]
    values = {value for one in results for value in one.got.values.reshape(-1)[:MANY].tolist()}
    if len(wrong) < FEW_WRONG or len(values) != 1:
        return []
    says = f"It is {values.pop():g} in {len(results)} calls."
    return [Reason.of("constant", says)]
