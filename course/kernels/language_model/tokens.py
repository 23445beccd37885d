"""Byte-pair tokens: a text as numbers, and back.

Source of the method: Sennrich, Haddow, Birch (2016); on bytes: Radford et al., GPT-2 (2019).
"""

import functools
import re
from collections import Counter, defaultdict

#: A word with the space before it, a run of digits, of signs, or of other space
WORD = re.compile(r" ?[^\W\d_]+| ?\d+| ?(?:[^\w\s]|_)+|\s+")
BYTES = 256  # tokens that are a byte each: with them any text can be said


class Tokens:
    """A vocabulary: all bytes, then one token for each merge of two earlier ones.

    merges: pairs of tokens; the i-th makes token 256 + i. pieces: token -> its bytes.
    """

    def __init__(self, merges):
        self.merges = [tuple(map(int, pair)) for pair in merges]
        self.ranks = {pair: BYTES + i for i, pair in enumerate(self.merges)}
        self.pieces = [bytes([i]) for i in range(BYTES)]
        for left, right in self.merges:
            self.pieces.append(self.pieces[left] + self.pieces[right])
        self._word = functools.lru_cache(1 << 16)(self._cut)

    def __len__(self):
        return len(self.pieces)

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
        return [token for word in WORD.findall(text) for token in self._word(word)]

    def decode(self, tokens) -> str:
        """The text of tokens; what is no UTF-8 (half a character, say) becomes a replacement."""
        return b"".join(self.pieces[int(token)] for token in tokens).decode(errors="replace")

    def _cut(self, word: str) -> list[int]:
        """The tokens of a word: of its merges always the earliest learned first."""
        tokens = list(word.encode())
        while len(tokens) > 1:
            pair = min(zip(tokens, tokens[1:], strict=False), key=self._rank)
            if pair not in self.ranks:
                break
            tokens = merged(tokens, pair, self.ranks[pair])
        return tokens

    def _rank(self, pair) -> int:
        return self.ranks.get(pair, len(self.pieces))


def merged(tokens: list[int], pair: tuple[int, int], new: int) -> list[int]:
    """The tokens with `new` wherever the pair stood, from left to right."""
    result = []
    i = 0
    while i < len(tokens):
        found = tuple(tokens[i : i + 2]) == pair
        result.append(new if found else tokens[i])
        i += 1 + found
    return result


def learn(text: str, vocabulary: int) -> list[tuple[int, int]]:
    """The merges of a vocabulary of so many tokens: always the pair that stands most often.

    Of pairs that stand equally often, the smaller one. Fewer come where no pair stands twice.
    """
    counts = Counter(WORD.findall(text))
    words = [(list(word.encode()), count) for word, count in counts.items()]
    pairs = Counter()
    places = defaultdict(set)  # pair -> numbers of words in which it may stand
    for number, (tokens, count) in enumerate(words):
        for pair in zip(tokens, tokens[1:], strict=False):
            pairs[pair] += count
            places[pair].add(number)
    merges = []
    while len(merges) < vocabulary - BYTES:
        best = min(pairs, key=lambda pair: (-pairs[pair], pair), default=None)
        if best is None or pairs[best] < 2:
            break
        new = BYTES + len(merges)
        merges.append(best)
        for number in places.pop(best):
            tokens, count = words[number]
            after = merged(tokens, best, new)
            for pair in zip(tokens, tokens[1:], strict=False):
                pairs[pair] -= count
            for pair in zip(after, after[1:], strict=False):
                pairs[pair] += count
                places[pair].add(number)
            words[number] = after, count
        del pairs[best]
    return merges
