"""The Fourier transform: by hand, and as kernels that keep up with the library.

``cuda/`` holds the CUDA C, each file whole; `kernels` compiles it.

    by_hand               the transform one step at a time
    plans, other_plans    launch the fast kernels: rows, long ones, pictures; real rows, any length,
                          filters through the transform and directly
    rightness             holds them against float64
    cufft, bench          the rival, and the race with it
    once                  runs each once, for a profiler
"""
