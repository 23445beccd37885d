"""How many of the processor's threads PyTorch takes."""

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch with one CPU thread: of a little work, many would only wait for one another."""
    import torch  # it takes seconds, and not everybody who may need this has work for it

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
