"""Compile many shapes of the fast kernels at once, in processes side by side."""

import concurrent.futures
import multiprocessing
import os

import torch

from course.kernels.row_kernels import fast
from course.kernels.row_kernels.operations import Operation
from course.kernels.row_kernels.shapes import Shape
from utils.engine import gpu


class Compiler:
    """Compiles kernels in processes side by side, in the order in which they were asked for."""

    def __init__(self):
        context = multiprocessing.get_context("spawn")
        workers = max(1, (os.cpu_count() or 2) - 2)
        self.pool = concurrent.futures.ProcessPoolExecutor(workers, mp_context=context)
        self.pending = {}

    def ask(
        self,
        operation: Operation,
        shapes: list[Shape],
        dtype: torch.dtype,
    ) -> None:
        """Begin to compile an operation's kernels for these shapes."""
        for shape in filter(None, shapes):
            request = operation.source(shape), shape, dtype, gpu().arch + "a"
            if request not in self.pending:
                self.pending[request] = self.pool.submit(fast.compile_kernel, *request)

    def wait(
        self,
        operation: Operation,
        shapes: list[Shape],
        dtype: torch.dtype,
    ) -> None:
        """Wait for them. A failure is left to the launch, which compiles again and says why."""
        self.ask(operation, shapes, dtype)
        for shape in filter(None, shapes):
            request = operation.source(shape), shape, dtype, gpu().arch + "a"
            future = self.pending[request]
            if not future.exception():
                fast.COMPILED[request] = future.result()
