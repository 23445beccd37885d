"""How an answer is judged: run, watched, told what is wrong. (`utils.check` compares arrays.)

checker.py        one answer, one outcome; by the exercise's kind it calls one of
numba_kernels.py  cuda_c_files.py  cpp.py  functions.py  triton_kernels.py
trials.py         what is tried: fixed, drawn (drawn.py) and special (specials.py) inputs
engines.py        launches, watched (watched.py) or not; loaded.py and apart.py: in processes apart
typing.py         what numba-cuda's compiler says; triton_front.py: what Triton's does (asked.py)
kept.py           what is outside of an answer, and changes with each run
diagnose.py       from runs to a reason, by rules in by_launch.py, by_element.py (evidence.py)
by_pattern.py     what all wrong launches share where none fits; by_call.py: all wrong calls
rejected.py       what all kinds reject; report.py shows it, films.py the film of it
"""
