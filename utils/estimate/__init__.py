"""Say it before you run it: what a kernel would take on a GPU that is not here, and what limits it.

    from utils.estimate import Blank, Launch, estimate

    a = Blank(1 << 25)                              # float32, of the real size; takes no room
    estimate(Launch(vector_add, n // 256, 256, (a, a, a)), gpu="H200")
    # about 0.119 ms on an H200 (estimate ...), limited by the memory's bandwidth

Three steps, a module each, from the kernel up:

1. **Counts** (`sampling`, `operations`, `life`, `totals`). A few blocks of the launch run on the
   CPU engine under the tracer. Counted are requests, sectors, lines, passes, atomics and barriers,
   as the tracer counts them; instructions by class, from the statements that ran; and the chain of
   waits of the busiest thread. Blocks are taken as alike; where they loop for long, counts at three
   small sizes are carried on along a straight line, or there is no estimate. A CUDA C kernel is
   always counted so, from the CPU runtime's record: its accesses, atomics and barriers, not its
   arithmetic.
2. **Constants** (`gpus`). How many of each thing a GPU does per second and how long one takes, by
   microbenchmarks (`course/kernels/machine`), or scaled from them by data sheets.
3. **Time** (`model`). Each resource alone would take amount / rate; the times are joined so that
   the longest decides and near-equal ones disturb one another. A launch's start is added.

The resources: the memory's bandwidth, with every byte moved once in pieces of 64; the L2 cache's,
for what L1 does not hold; lines and passes of L1 and shared memory; issue slots, and the units of
each class of instructions; atomics on one element; the start of blocks; and latency: blocks live as
long as their chain of waits, and only so many are there at once (Little's law with occupancy).

Without a GPU `benchmark` and `compare` say such an estimate of what a cell launched, at the size
that it has on a GPU (`at_gpu_size`).

Of a Triton kernel one program runs alone in Triton's interpreter (`in_triton`); there tensor cores
are a resource, at the rate of the data sheet.

What to change next, and what it would bring, says `Estimate.waterfall` (`improving`).

What is not in it: in CUDA C tensor cores and everything asynchronous (cp.async, TMA); arrays that
L2 holds only in part; registers that spill; how evenly SMs are loaded; spin-waits and grid-wide
barriers, loops whose length depends on data. Of the last three, of tensor cores and of asynchronous
copies in CUDA C it says that it does not know.

How far it is off: `course.kernels.machine.judge` holds it against recorded times and writes
`assets/recorded/estimates.json`, from which each estimate takes the error that it states.
"""

from .sampling import Blank, Launch, Unknown
from .statement import Estimate, estimate

__all__ = ["Blank", "Estimate", "Launch", "Unknown", "estimate"]
