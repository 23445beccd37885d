"""A fair queue for what is timed on a GPU that several people use.

    with gpu_queue.turn() as mine:
        ...             # what may run beside others: compiling, copying, a first launch
        mine.start()    # waits; from here on nobody else's clock runs
        for ...:
            mine.renew()    # where the turn is over, lets the next ones go first
            ...

`utils.timing` does so around each of its clocks, so `benchmark`, `compare` and the races queue by
themselves. Without the environment variable ``CUDA_COURSE_GPU_QUEUE`` all of this does nothing.

entry: the door. turns: a process's turn. tickets: places in the queue, which nobody can forge.
words: what who waits is told. sharing: how learners share a GPU besides: memory, MIG, MPS.

    python -m utils.gpu_queue                       how the GPUs here can be shared
    python -m utils.gpu_queue --make FOLDER         makes the queue's folder, as the administrator
"""

from utils.gpu_queue.entry import FOLDER, turn

__all__ = ["FOLDER", "turn"]
