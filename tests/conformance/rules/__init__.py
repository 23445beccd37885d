"""Tables of arithmetic rules, in C and in Numba: what a GPU gave, what the rules say, our engines.

Each is one program of many small cases (`cuda_c.py`, `numba_cases.py`). `python -m
tests.conformance.rules.record`, on a machine with a GPU, writes what that gave to `recorded/`.
"""
