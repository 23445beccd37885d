"""Who computes which tokens in the next step, and in which blocks of the cache.

    scheduler = Scheduler(blocks=1000)
    scheduler.add(Sequence(tokens, most=50))
    plan = scheduler.plan()              # what to copy and what to compute: give it to a runner
    scheduler.computed(plan)             # its keys and values are in the cache now
    scheduler.append(sequence, token)    # what was drawn for a sequence that had computed all

The ideas: batches that sequences join and leave at every step (Yu et al., Orca, 2022); a cache in
blocks, with copies on write (Kwon et al., PagedAttention, 2023); prompts in pieces beside the
decoding of others (Agrawal et al., Sarathi, 2023); blocks of equal prefixes shared (Zheng et al.,
SGLang, 2023, who keep a tree; vLLM and this file keep a hash of each block and all before it).
"""

import hashlib
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from utils.occupancy import ceil_div

BLOCK = 16  # tokens of a block of the cache


@dataclass(eq=False)
class Sequence:
    """A prompt and what is written after it. most: tokens to write at most.

    cached: how many of the tokens have their keys and values in the cache, in the blocks of the
    table: token t's are in block table[t // BLOCK], in row t % BLOCK.
    """

    tokens: list[int]
    most: int = 16
    cached: int = 0
    table: list[int] = field(default_factory=list)
    prefixes: list[bytes] = field(default_factory=list)  # of whole blocks, as far as needed so far

    def __post_init__(self):
        self.longest = len(self.tokens) + self.most

    @property
    def missing(self) -> int:
        """Tokens that are not in the cache yet: 1 for a sequence that is decoding."""
        return len(self.tokens) - self.cached

    def prefix(self, number: int) -> bytes:
        """A fingerprint of all tokens up to the end of a block. Equal ones mean equal tokens."""
        while len(self.prefixes) <= number:
            before = self.prefixes[-1] if self.prefixes else b""
            first = BLOCK * len(self.prefixes)
            words = array("q", self.tokens[first : first + BLOCK])
            self.prefixes.append(hashlib.sha256(before + words.tobytes()).digest())
        return self.prefixes[number]


class Pool:
    """The cache's blocks: how many sequences have each, and which prefix's end each one holds."""

    def __init__(self, blocks: int):
        self.users = [0] * blocks
        self.free = dict.fromkeys(range(blocks))  # in the order in which they are taken
        self.holder = {}  # prefix -> block
        self.held = {}  # block -> prefix

    def take(self) -> int:
        """A block for new tokens: the one that nobody has wanted for longest."""
        block = next(iter(self.free))
        del self.free[block]
        self.holder.pop(self.held.pop(block, None), None)
        self.users[block] = 1
        return block

    def share(self, block: int) -> int:
        """The same block for one more sequence; it may have been free, and is then brought back."""
        self.free.pop(block, None)
        self.users[block] += 1
        return block

    def give_back(self, block: int) -> None:
        """One sequence less. A block of none is free, and keeps its tokens until it is taken."""
        self.users[block] -= 1
        if self.users[block] == 0:
            self.free[block] = None

    def hold(self, prefix: bytes, block: int) -> None:
        """A block is full: whoever begins with the same tokens may share it."""
        if prefix not in self.holder:
            self.holder[prefix] = block
            self.held[block] = prefix


@dataclass(frozen=True)
class Chunk:
    """Some of a sequence's tokens, to be computed in one step.

    first: the position of the first. is_last: whether the next token can be drawn after it.
    """

    sequence: Sequence
    first: int
    count: int
    is_last: bool


@dataclass
class Plan:
    """A step. copies: (from, to) blocks, in this order, before anything is computed."""

    copies: list[tuple[int, int]] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    preempted: list[Sequence] = field(default_factory=list)


# ---- what may be decided otherwise


def may_enter(needed: int, free: int, running: int) -> bool:
    """Whether the next in the line begins. needed: blocks for its tokens; running: sequences.

    A block for each one that runs stays free, or somebody would soon be preempted.
    """
    return needed + running <= free


def victim(running: list[Sequence]) -> Sequence:
    """Who gives all blocks back where there are none left: the one that came last."""
    return running[-1]


def must_copy(users: int) -> bool:
    """Whether a block that so many sequences have is copied before one of them writes into it."""
    return users > 1


@dataclass(frozen=True)
class Rules:
    """The three decisions."""

    may_enter: Callable = may_enter
    victim: Callable = victim
    must_copy: Callable = must_copy


class Scheduler:
    """First come, first served. budget: tokens of a step; places: sequences that run at once.

    sharing: whether blocks of equal prefixes are shared.
    """

    def __init__(
        self,
        blocks: int,
        budget: int = 64,
        places: int = 16,
        sharing: bool = True,
        rules: Rules | None = None,
    ):
        if budget < places:
            raise ValueError(f"a step of {budget} tokens has no room for {places} sequences")
        self.pool = Pool(blocks)
        self.budget, self.places, self.sharing = budget, places, sharing
        self.rules = rules or Rules()
        self.waiting = deque()
        self.running = []  # in the order in which they came

    def add(self, sequence: Sequence) -> None:
        """Let a sequence wait for its turn. ValueError if it could not even run alone."""
        needed, blocks = ceil_div(sequence.longest, BLOCK), len(self.pool.users)
        if needed > blocks:
            raise ValueError(f"{sequence.longest} tokens need {needed} blocks; there are {blocks}")
        self.waiting.append(sequence)

    def plan(self) -> Plan:
        """The next step: a token of all that decode, then pieces of prompts, then who waits."""
        plan, left = Plan(), self.budget
        for sequence in list(self.running):
            if sequence.missing == 1 and self._make_room(sequence, plan):
                left -= self._cut(sequence, left, plan)
        for sequence in self.running:
            if sequence.missing > 1:
                left -= self._cut(sequence, left, plan)
        while left and self.waiting and self._admit(self.waiting[0]):
            sequence = self.waiting.popleft()
            left -= self._cut(sequence, left, plan)
        return plan

    def computed(self, plan: Plan) -> None:
        """The plan's keys and values are in the cache: blocks that are full can be shared."""
        for chunk in plan.chunks:
            sequence = chunk.sequence
            full = sequence.cached // BLOCK
            sequence.cached += chunk.count
            for number in range(full, sequence.cached // BLOCK):
                self.pool.hold(sequence.prefix(number), sequence.table[number])

    def append(self, sequence: Sequence, token: int) -> None:
        """The token that was drawn for a sequence."""
        sequence.tokens.append(token)

    def fork(self, sequence: Sequence) -> Sequence:
        """A second sequence that has begun alike. It shares all blocks, the last one, too.

        Where all places are taken it waits, first in the line, and finds most of them later.
        """
        twin = Sequence(list(sequence.tokens))
        twin.longest = sequence.longest
        if len(self.running) == self.places:
            self.waiting.appendleft(twin)
            return twin
        twin.cached = sequence.cached
        twin.table = [self.pool.share(block) for block in sequence.table]
        self.running.insert(self.running.index(sequence) + 1, twin)
        return twin

    def remove(self, sequence: Sequence) -> None:
        """A sequence has ended, or nobody wants it any more: its blocks are free at once."""
        if sequence in self.waiting:
            self.waiting.remove(sequence)
        if sequence in self.running:
            self.running.remove(sequence)
        self._empty(sequence)

    def _cut(self, sequence: Sequence, left: int, plan: Plan) -> int:
        """Plan as many of the missing tokens as a step has left; returns how many."""
        count = min(sequence.missing, left)
        if count:
            is_last = count == sequence.missing
            plan.chunks.append(Chunk(sequence, sequence.cached, count, is_last))
        return count

    def _admit(self, sequence: Sequence) -> bool:
        """Give blocks for all its tokens to one that waits, if there are enough.

        The last token is always computed, since its logits are wanted.
        """
        found = []
        while self.sharing and BLOCK * (len(found) + 1) < len(sequence.tokens):
            block = self.pool.holder.get(sequence.prefix(len(found)))
            if block is None:
                break
            found.append(block)
        new = ceil_div(len(sequence.tokens), BLOCK) - len(found)
        brought_back = sum(block in self.pool.free for block in found)
        needed, running = new + brought_back, len(self.running)
        if running == self.places or needed > len(self.pool.free):
            return False
        if not self.rules.may_enter(needed, len(self.pool.free), running):
            return False
        sequence.table = [self.pool.share(block) for block in found]
        sequence.table += [self.pool.take() for _ in range(new)]
        sequence.cached = BLOCK * len(found)
        self.running.append(sequence)
        return True

    def _make_room(self, sequence: Sequence, plan: Plan) -> bool:
        """See to a block of its own for the next token; False where it was preempted itself."""
        number = sequence.cached // BLOCK
        while sequence in self.running:
            fresh = number == len(sequence.table)
            if not fresh and not self.rules.must_copy(self.pool.users[sequence.table[number]]):
                return True
            if not self.pool.free:
                self._preempt(self.rules.victim(self.running), plan)
            elif fresh:
                sequence.table.append(self.pool.take())
            else:  # others have it, too: copy on write
                shared = sequence.table[number]
                sequence.table[number] = self.pool.take()
                plan.copies.append((shared, sequence.table[number]))
                self.pool.give_back(shared)
        return False

    def _preempt(self, sequence: Sequence, plan: Plan) -> None:
        """Take all blocks from one that runs; it waits, first in the line, and is computed anew."""
        self.running.remove(sequence)
        self._empty(sequence)
        self.waiting.appendleft(sequence)
        plan.preempted.append(sequence)
        plan.chunks = [chunk for chunk in plan.chunks if chunk.sequence is not sequence]

    def _empty(self, sequence: Sequence) -> None:
        for block in reversed(sequence.table):  # of a prefix, the end is forgotten first
            self.pool.give_back(block)
        sequence.table, sequence.cached = [], 0
