"""A GPU's streams and PyTorch's allocator as a model, which runs as badly as the rules allow.

It has the names of `torch.cuda`: a function that takes either as its first argument can be tried
here, where every order that no event forbids really comes, and then used there.

    gpu = Model(order="newest first")
    x = gpu.full(2.0)
    side = gpu.Stream()
    with gpu.stream(side):
        y = x + x               # queued on `side`; nothing runs yet
    gpu.synchronize()           # now all does, stream by stream
"""

import contextlib
import itertools
import math
import random
from string import ascii_uppercase

ORDERS = ("oldest first", "newest first", "random")


def letter(number: int) -> str:
    """A, B, C … for 0, 1, 2 …; after Z come numbers."""
    return ascii_uppercase[number] if number < len(ascii_uppercase) else str(number)


class Block:
    """A piece of memory, its address a letter: one number stands for all that it holds."""

    def __init__(self, stream, address):
        self.value = math.nan
        self.address = address
        self.stream = stream  # on which it was allocated, and is handed out again
        self.users = set()  # other streams, as record_stream has told
        self.events = []  # once it is free: (stream, how many of its steps must be done)

    def reusable(self) -> bool:
        """Whether the streams that used it have got as far as they were when it became free."""
        return all(stream.done >= steps for stream, steps in self.events)


class Stream:
    """A queue of work. Its steps run in order; those of different streams in any."""

    def __init__(self, model):
        self.model = model
        self.steps = []
        self.done = 0

    def wait_stream(self, other):
        """What is queued here from now on waits for what is queued there now."""
        self.steps.append((other, len(other.steps)))

    def ready(self) -> bool:
        """Whether a step is left, and does not wait for another stream."""
        if self.done == len(self.steps):
            return False
        step = self.steps[self.done]
        return callable(step) or step[0].done >= step[1]

    def advance(self):
        """Run the next step."""
        step = self.steps[self.done]
        self.done += 1
        if callable(step):
            step()


class Tensor:
    """A name for a block. When the last name is gone, the block is free, whoever still reads it."""

    def __init__(self, model, block):
        self.model = model
        self.block = block

    def __add__(self, other):
        return self.model.launch(lambda a, b: a + b, self, other, name="add")

    def __mul__(self, other):
        return self.model.launch(lambda a, b: a * b, self, other, name="multiply")

    def record_stream(self, stream):
        """Tell the allocator that this stream uses the memory, too; of its own one it knows."""
        if stream is not self.block.stream:
            self.block.users.add(stream)

    def item(self) -> float:
        """The number, once all work is done."""
        self.model.synchronize()
        return self.block.value

    def __del__(self):
        self.model.free(self.block)


class Model:
    """One GPU: streams, the current one among them, and the memory that is free again.

    order: which stream goes on first when several could, one of ORDERS.
    """

    def __init__(self, order: str = "random", seed: int = 0):
        self.order = order
        self.random = random.Random(seed)
        self.streams = []
        self.free_blocks = []
        self.addresses = itertools.count()
        #: (number of the stream, what it did, addresses read, address written), as it really ran
        self.history = []
        self.current = self.Stream()

    def Stream(self):
        self.streams.append(Stream(self))
        return self.streams[-1]

    def default_stream(self):
        return self.streams[0]

    def current_stream(self):
        return self.current

    @contextlib.contextmanager
    def stream(self, stream):
        """Make a stream the current one."""
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    # ---- memory

    def empty(self) -> Tensor:
        """Memory as it was left: of the current stream, without waiting for anything."""
        for block in self.free_blocks:
            if block.stream is self.current and block.reusable():
                self.free_blocks.remove(block)
                block.events = []
                return Tensor(self, block)
        return Tensor(self, Block(self.current, letter(next(self.addresses))))

    def full(self, value: float) -> Tensor:
        return self.launch(lambda: value, name="fill")

    def free(self, block: Block) -> None:
        """Hand the block out again: at once, or, if other streams use it, when they are done.

        Done is what is queued there now: the allocator records an event on each of them
        (PyTorch's c10/cuda/CUDACachingAllocator.cpp, `insert_events`).
        """
        block.events = [(stream, len(stream.steps)) for stream in block.users]
        block.users = set()
        self.free_blocks.append(block)

    # ---- work

    def launch(self, function, *inputs: Tensor, stream=None, name="kernel") -> Tensor:
        """Queue out = function(*inputs) on a stream, by default the current one; returns out."""
        out = self.empty()
        target, sources = out.block, [tensor.block for tensor in inputs]
        stream = stream or self.current

        def step():
            target.value = function(*(block.value for block in sources))
            did = f"{name} → {target.value:g}"
            read = [block.address for block in sources]
            self.history.append((self.streams.index(stream), did, read, target.address))

        stream.steps.append(step)
        return out

    def synchronize(self) -> None:
        """Run everything that is queued, in the worst order that is allowed."""
        while ready := [stream for stream in self.streams if stream.ready()]:
            if self.order == "random":
                self.random.choice(ready).advance()
            else:
                ready[0 if self.order == "oldest first" else -1].advance()
