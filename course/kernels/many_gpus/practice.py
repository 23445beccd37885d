"""One rank's end of a ring, to practise on: messages start at once, and are there when waited for.

All ranks run the same function, so what the left neighbour has sent by now is known from what this
rank has sent by now: no other process is needed, and what would hang is told at once.
"""


class LinkError(Exception):
    """What would hang on GPUs, or send other numbers than it should."""


class Request:
    """A message that has started. wait() returns when its buffer may be used again."""

    def __init__(self, finish):
        self._finish = finish
        self.done = False

    def wait(self) -> None:
        """Return when the message has gone out, or come in."""
        if not self.done:
            self._finish()
        self.done = True


class Link:
    """Where a rank sends and receives; numbers: what every rank begins with, by rank.

    Buffers are lists of one number, as a GPU's buffers are memory: a received number stands there
    after wait(), not before.
    """

    def __init__(self, rank: int, numbers: list):
        self.rank, self.ranks = rank, len(numbers)
        self._numbers = numbers
        self._sends, self._receives = [], []

    def send(self, to: int, buffer: list) -> Request:
        """Start to send the buffer's number to a rank."""
        right = (self.rank + 1) % self.ranks
        if to != right:
            raise LinkError(
                f"rank {right} waits for rank {self.rank}'s number, which goes to rank {to}"
            )
        if any(not request.done for request in self._sends):
            raise LinkError("the send before has not been waited for: it may still read its buffer")
        turn, number = len(self._sends), buffer[0]
        source = (self.rank - turn) % self.ranks
        if number != self._numbers[source]:
            raise LinkError(
                f"in turn {turn} rank {to} needs rank {source}'s number, {self._numbers[source]}, "
                f"and would get {number}: is it there already?"
            )

        def finish():
            if buffer[0] != number:
                raise LinkError(f"send {turn} read its buffer after another number was put there")

        self._sends.append(Request(finish))
        return self._sends[-1]

    def receive(self, source: int, buffer: list) -> Request:
        """Start to receive a number from a rank into the buffer."""
        left = (self.rank - 1) % self.ranks
        if source != left:
            raise LinkError(f"rank {source} sends nothing to rank {self.rank}: rank {left} does")
        turn = len(self._receives)

        def finish():
            if len(self._sends) <= turn:
                raise LinkError(
                    f"all {self.ranks} ranks wait here for a number, and none has sent one: they "
                    "wait for ever"
                )
            buffer[0] = self._numbers[(left - turn) % self.ranks]

        self._receives.append(Request(finish))
        return self._receives[-1]

    def left_open(self) -> str:
        """What has started and was never waited for, as a sentence; "" if all has ended."""
        for what, requests in (("send", self._sends), ("receive", self._receives)):
            for turn, request in enumerate(requests):
                if not request.done:
                    return f"The {what} of turn {turn} was never waited for."
        return ""

    def __repr__(self):
        return f"Link(rank={self.rank}, ranks={self.ranks})"
