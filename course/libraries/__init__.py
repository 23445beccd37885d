"""NVIDIA's libraries, called from CUDA C and from Python.

cuda/       whole programs, one a library; each checks its result against float64
snippets/   short Python programs for packages that need a GPU
programs    builds and runs the first, `recorded` shows what the second printed on a GPU
blas        a matrix product with cuBLAS's arguments and rules, in NumPy
philox      cuRAND's random numbers, in NumPy
tasks       ten tasks by libraries, in Python; `table` compares them
bench       checks and times everything on a GPU
"""
