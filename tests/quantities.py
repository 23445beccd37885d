"""Numbers as prose says them: "about twice as fast", "a third more", "five to six times", "50 µs".

`last_in(text)` reads the last one as the values that it allows. How much that is, is fixed here:

- digits hold for what rounds to them: "1.5" from 1.45 to 1.55, "170" from 165 to 175;
- words hold within a tenth: "twice" from 1.8 to 2.2;
- "about", "some" and "or so" allow 15 %, "nearly" up to 15 % less;
- "more than" and "at least" end at the double, "less than" and "at most" at the half: a bound that
  is further off says nothing;
- what "a third more" adds holds within a fifth, what "3 % faster" adds for what rounds to it.

A whole number needs its unit ("3 times", "82 %"), so that "rung 9" is none.
"""

import re
from dataclasses import dataclass

WORD = 0.1
ABOUT = 0.15
ADDED = 0.2
SAME = 0.03  # "as fast as"
ABOUT_SAME = 0.1

COUNTS = {
    "one and a half": 1.5,
    "two and a half": 2.5,
    "a hundred": 100,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "twelve": 12,
    "twenty": 20,
    "thirty": 30,
    "fifty": 50,
    "an": 1,
    "a": 1,
}
FACTORS = {"twice": 2, "doubles": 2, "triples": 3, "halves": 1 / 2, "half": 1 / 2}
PARTS = {
    "third": 1 / 3,
    "quarter": 1 / 4,
    "fifth": 1 / 5,
    "sixth": 1 / 6,
    "seventh": 1 / 7,
    "eighth": 1 / 8,
    "ninth": 1 / 9,
    "tenth": 1 / 10,
}

#: A unit's name in prose -> its size in the unit of `Said`
UNITS = {
    "times": (1, "1"),
    "%": (0.01, "1"),
    "percent": (0.01, "1"),
    "µs": (1e-6, "s"),
    "microsecond": (1e-6, "s"),
    "microseconds": (1e-6, "s"),
    "ms": (1e-3, "s"),
    "milliseconds": (1e-3, "s"),
    "seconds": (1, "s"),
    "cycles": (1, "cycles"),
    "TFLOP/s": (1e12, "FLOP/s"),
    "GFLOP/s": (1e9, "FLOP/s"),
    "TB/s": (1e12, "B/s"),
    "GB/s": (1e9, "B/s"),
    "MB": (1e6, "B"),
    "KB": (1e3, "B"),
}

HEDGES = {
    "about": ("about", "some", "around", "roughly"),
    "nearly": ("nearly", "almost"),
    "above": ("more than", "over", "at least"),
    "below": ("less than", "under", "at most", "up to"),
}
LOOSE = {" or so": "about", " and more": "above"}


def _any(words):
    """A regular expression for one of the words, the longest first."""
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


DIGITS = r"(?<!\w)\d[\d,]*(?:\.\d+)?"
_PART = rf"(?:{_any(COUNTS)}) (?:{_any(PARTS)})s?"
_VALUE = rf"{DIGITS}|\b(?:{_any(FACTORS)}|{_PART}|{_any(COUNTS)})\b"
_EVEN = r"as (?:fast|long|much|many|large|slow|expensive)"
QUANTITY = re.compile(
    rf"(?:\b(?P<hedge>{_any(sum(HEDGES.values(), ()))}) (?:the )?)?"
    rf"(?:(?P<first>{_VALUE})(?: (?:to|or) (?P<second>{_VALUE}))?"
    rf"(?P<again> {_EVEN} again)?"
    rf"(?: ?(?P<unit>(?-i:{_any(UNITS)}))(?![\w/]))?"
    rf"(?P<added> (?:more|less|fewer|faster|slower|longer|shorter)\b)?"
    rf"(?: {_EVEN}\b)?"
    rf"|\b(?P<even>{_EVEN})\b)"
    rf"(?P<loose>{_any(LOOSE)})?",
    re.IGNORECASE,
)
TAKEN = (" less", " fewer", " shorter")
MARKUP = re.compile(r"[*`_]|\]\([^)]*\)|\[")
TAIL = 7  # words between the number and the end: what it is a number of

SPEED = re.compile(r"\b(?:fast|faster|speed|rate|bandwidth)\b")
TIME = re.compile(r"\b(?:time|long|longer|shorter|slow|slower|expensive)\b")


#: Behind a ratio, or in it: that it is one of speeds or times
OF_WHAT = re.compile(
    r" (?:of )?(?:the |its |their |more )?(?:[\w.]+['’]s )?(?:run |whole )?"
    r"(?:speed|rate|bandwidth|time)\b"
)
COMPARED = re.compile(r"\bas (?:fast|long|slow)\b|\b(?:faster|slower|longer|shorter)\b")


@dataclass(frozen=True)
class Said:
    """What words claim: the values that they allow, in `unit` ("1" for a ratio), and whether they
    speak of a "speed", of a "time" or (None) of neither.
    """

    words: str
    low: float
    high: float
    unit: str
    of: str | None

    def allows(self, value):
        """Whether a measured value, in `unit`, is what the words say."""
        return self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)


def ratios_in(text):
    """The words of a text that say a ratio of two speeds or of two times: "twice as long".

    Not those without a number in them ("faster", "as fast as").
    """
    text = " ".join(MARKUP.sub("", text).split())
    for match in QUANTITY.finditer(text):
        if match["even"] or not complete(match):
            continue
        unit = UNITS[match["unit"]][1] if match["unit"] else "1"
        of = OF_WHAT.match(text, match.end())
        if unit == "1" and (of or COMPARED.search(match[0])):
            yield text[match.start() : of.end() if of else match.end()]


def last_in(text):
    """The last quantity in a text, as a Said. ValueError where none can be read."""
    text = " ".join(MARKUP.sub("", text).split())
    found = [match for match in QUANTITY.finditer(text) if complete(match)]
    if not found:
        raise ValueError(f"no number can be read in {text[-60:]!r}")
    match = found[-1]
    tail = text[match.end() :]
    if len(tail.split()) > TAIL:
        raise ValueError(f"{match[0]!r} is too far from the end of {text[match.start() :]!r}")
    words = match[0] + tail
    low, high = allowed(match)
    size, unit = UNITS[match["unit"]] if match["unit"] else (1, "1")
    if match["again"] or adds(match):
        low, high = added(match, low * size, high * size)
        size = 1
    return Said(words, low * size, high * size, unit, kind(words))


def complete(match):
    """Whether a match is a quantity: a count or a whole number is one only with its unit."""
    if match["even"] or match["unit"]:
        return True
    word = match["first"].lower()
    return word in FACTORS or word.split()[-1].removesuffix("s") in PARTS or "." in word


def allowed(match):
    """(low, high) of what was said, in the unit that was said."""
    hedge = hedge_of(match)
    if match["even"]:
        width = ABOUT_SAME if hedge == "about" else SAME
        return 1 - width, 1 + width
    said = value_of(match["first"])
    if match["second"]:
        return tuple(sorted((said, value_of(match["second"]))))
    if hedge:
        return hedged(hedge, said)
    if match["first"][0].isdigit():
        width = place(match["first"]) / 2
    else:
        width = said * (ADDED if adds(match) else WORD)
    return said - width, said + width


def added(match, low, high):
    """(low, high) around 1 of "a third more", "3 % less", "half as fast again"."""
    if hedge_of(match) == "below":
        low = 0
    if match["added"] and match["added"].lower() in TAKEN:
        return 1 - high, 1 - low
    return 1 + low, 1 + high


def adds(match):
    """Whether "more" adds what is said: "a third more" and "3 % more" do, "3 times more" not."""
    if not match["added"]:
        return False
    return match["unit"] in ("%", "percent") or (not match["unit"] and value_of(match["first"]) < 1)


def hedge_of(match):
    """A key of HEDGES, or None."""
    if match["loose"]:
        return LOOSE[match["loose"].lower()]
    word = (match["hedge"] or "").lower()
    return next((key for key, words in HEDGES.items() if word in words), None)


def hedged(hedge, said):
    """(low, high) of a number behind a hedge."""
    return {
        "about": (said * (1 - ABOUT), said * (1 + ABOUT)),
        "nearly": (said * (1 - ABOUT), said),
        "above": (said, 2 * said),
        "below": (said / 2, said),
    }[hedge]


def place(digits):
    """The size of the last digit that is meant: 0.1 of "1.5", 10 of "170", 1 of "36"."""
    _, _, decimals = digits.partition(".")
    if decimals:
        return 10 ** -len(decimals)
    zeros = len(digits) - len(digits.rstrip("0"))
    return min(10**zeros, value_of(digits) / 10) if zeros else 1


def value_of(word):
    """The number that "1,024", "three", "twice" or "two thirds" says."""
    word = word.lower()
    if word[0].isdigit():
        return float(word.replace(",", ""))
    known = COUNTS | FACTORS
    if word in known:
        return known[word]
    count, _, part = word.rpartition(" ")
    return COUNTS[count] * PARTS[part.removesuffix("s")]


def kind(words):
    """Whether words speak of a "speed" or a "time"; None where of neither, or of both."""
    speed, time = SPEED.search(words), TIME.search(words)
    if bool(speed) == bool(time):
        return None
    return "speed" if speed else "time"
