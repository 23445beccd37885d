"""A ring of ranks to practise on: messages start at once, and are there when waited for.

`play` runs a function for every rank, each in a greenlet of its own: a rank that waits lets the
others go on. No buffer holds a message on its way (as with ncclSend, and with MPI's long messages):
it goes over when its sender and its receiver have both begun. When nobody can go on, that is told.
"""

from greenlet import getcurrent, greenlet


class LinkError(Exception):
    """What would hang on GPUs, or send other numbers than it should."""


class Request:
    """A message that has started. wait() returns when its buffer may be used again."""

    def __init__(self, link, other: int, turn: int, buffer: list):
        self.link, self.other, self.turn, self.buffer = link, other, turn, buffer
        self.done = False

    def wait(self) -> None:
        """Return when the message has gone out, or come in."""
        if self.done:
            return
        while self.partner() is None:
            self.link.waits_for = self
            getcurrent().parent.switch()
        self.link.waits_for = None
        self._finish()
        self.done = True

    def partner(self):
        """The other end's request for the same message; None if it has not begun."""
        requests = self._others(self.link.links[self.other])
        return requests[self.turn] if len(requests) > self.turn else None


class Send(Request):
    """A number on its way out: read from its buffer at any time until wait() returns."""

    def __init__(self, *message):
        super().__init__(*message)
        self.number = self.buffer[0]

    @staticmethod
    def _others(link):
        return link.receives

    def _finish(self):
        if self.buffer[0] != self.number:
            raise LinkError(f"send {self.turn} read its buffer after another number was put there")

    def __str__(self):
        return f"until its number has gone out to rank {self.other}"


class Receive(Request):
    """A number on its way in: in its buffer when wait() returns, and not before."""

    @staticmethod
    def _others(link):
        return link.sends

    def _finish(self):
        self.buffer[0] = self.partner().number

    def __str__(self):
        return f"for a number from rank {self.other}"


class Link:
    """Where a rank sends and receives; numbers: what every rank begins with, by rank.

    Buffers are lists of one number, as a GPU's buffers are memory.
    """

    def __init__(self, rank: int, numbers: list):
        self.rank, self.ranks = rank, len(numbers)
        self.numbers = numbers
        self.links = [self]  # of all ranks, while they play
        self.sends, self.receives = [], []
        self.waits_for = None

    def send(self, to: int, buffer: list) -> Request:
        """Start to send the buffer's number to the next rank."""
        right = (self.rank + 1) % self.ranks
        if to != right:
            raise LinkError(
                f"numbers go to the next rank: rank {self.rank} sends to rank {right}, not to "
                f"rank {to}"
            )
        return self._start(Send, self.sends, to, buffer)

    def receive(self, source: int, buffer: list) -> Request:
        """Start to receive a number from the rank before into the buffer."""
        left = (self.rank - 1) % self.ranks
        if source != left:
            raise LinkError(f"rank {source} sends nothing to rank {self.rank}: rank {left} does")
        return self._start(Receive, self.receives, source, buffer)

    def _start(self, kind, requests, other, buffer):
        if any(buffer is one.buffer and not one.done for one in (*self.sends, *self.receives)):
            raise LinkError(
                "a message that has not been waited for may still use this buffer: wait() first"
            )
        requests.append(kind(self, other, len(requests), buffer))
        return requests[-1]

    def is_stuck(self) -> bool:
        """Whether it waits for a message of which the other end has not begun."""
        return self.waits_for is not None and self.waits_for.partner() is None

    def left_open(self) -> str:
        """What has started and was never waited for, as a sentence; "" if all has ended."""
        for what, requests in (("send", self.sends), ("receive", self.receives)):
            for turn, request in enumerate(requests):
                if not request.done:
                    return f"The {what} of turn {turn} was never waited for."
        return ""

    def __repr__(self):
        return f"Link(rank={self.rank}, ranks={self.ranks})"


def play(function, link: Link, mine):
    """What function(link, mine) returns while every rank runs the same with its own number.

    Raises LinkError when ranks wait for ever, and whatever a rank raises.
    """
    numbers = link.numbers
    links = [link if rank == link.rank else Link(rank, numbers) for rank in range(link.ranks)]
    own_numbers = [mine if rank == link.rank else numbers[rank] for rank in range(link.ranks)]
    for each in links:
        each.links = links
    ranks = [greenlet(function) for _ in links]
    returned = {}
    while len(returned) < len(ranks):
        moved = False
        for rank, (each, run) in enumerate(zip(links, ranks, strict=True)):
            if run.dead or each.is_stuck():
                continue
            came = run.switch() if run else run.switch(each, own_numbers[rank])
            moved = True
            if run.dead:
                returned[rank] = came
        if not moved:
            stuck = next(rank for rank in range(len(ranks)) if not ranks[rank].dead)
            ranks[stuck].throw(LinkError(waiting_for_ever(links, returned)))
    return returned[link.rank]


def waiting_for_ever(links, returned) -> str:
    """What each rank waits for."""
    requests = [link.waits_for for rank, link in enumerate(links) if rank not in returned]
    everyone = f"all {len(links)} ranks wait here" if len(links) > 1 else "a rank alone waits here"
    if not returned and all(isinstance(request, Receive) for request in requests):
        return f"{everyone} for a number, and none has sent one: they wait for ever"
    if not returned and all(isinstance(request, Send) for request in requests):
        return (
            f"{everyone} until their number has gone out, and none has begun to receive: a message "
            "that no buffer holds waits for ever"
        )
    waiting = [f"rank {request.link.rank} {request}" for request in requests]
    ended = [f"rank {rank} has returned" for rank in returned]
    return "some ranks wait for ever: " + ", ".join([*waiting, *ended])
