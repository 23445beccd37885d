"""The Fourier transform: by hand, and as kernels that keep up with the library.

``cuda/`` holds the CUDA C, each file whole; `kernels` compiles it.

    plans                 launch the kernels: `Rows`, `Long`, `Pictures`
    cufft, bench          the rival, and the race with it
"""
