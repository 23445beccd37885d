"""Many things at once: Triton compiles in several threads, since its passes let go of Python."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import torch

from utils import has_gpu


def at_once(function: Callable, items: Iterable) -> list:
    """[function(item) for each item]: in threads with a GPU, in turn without.

    The interpreter that stands in for Triton without a GPU knows one launch at a time.
    """
    items = list(items)
    if not has_gpu():
        return [function(item) for item in items]

    def on_the_gpu(item):
        torch.cuda.current_stream()  # gives this thread a CUDA context
        result = function(item)
        torch.cuda.synchronize()
        return result

    with ThreadPoolExecutor(min(14, os.cpu_count() or 1)) as pool:
        return list(pool.map(on_the_gpu, items))
