"""kerneljudge: is a kernel that you did not write right, fast and honest?

    from course.judge import Demands, judge, sum_of_products

    def inputs(rng, n):
        return rng.standard_normal((n, n), np.float32), rng.standard_normal((n, n), np.float32)

    judge("submission.py", lambda a, b: a @ b, inputs, Demands(error=sum_of_products(64)))

The candidate runs in a process of its own that has never seen the reference; what it returns
comes back as bytes, and only then is the expected result computed, here. README.md tells the rest.

report.py    what is returned          words.py      every reason, in words
demands.py   what can be demanded      errors.py     how wrong a right result may be
right.py     which calls are made      cases.py      other inputs made of drawn ones
comparing.py what the results show     values.py     arguments and results as values
sandbox.py   the candidate's process   worker.py     what runs in it (watching.py, running.py:
             is noted; desk.py: is given and returned; channel.py: how the two speak)
reading.py   what its source says      honest.py, fast.py, library.py: the other two questions
tasks.py     tasks in files, KernelBench's among them; `python -m course.judge` judges one
"""

from course.judge.demands import Demands, InOut, Out, Property, beyond
from course.judge.errors import Bound, elementwise, exactly, sum_of_products
from course.judge.judging import judge
from course.judge.report import Answer, Reason, Report

__all__ = [
    "Answer",
    "Bound",
    "Demands",
    "InOut",
    "Out",
    "Property",
    "Reason",
    "Report",
    "beyond",
    "elementwise",
    "exactly",
    "judge",
    "sum_of_products",
]
