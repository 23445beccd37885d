"""Sums, scans and sorts: many values into one, running sums, and what is built on them.

``cuda/`` holds the CUDA C, each file whole; `kernels` compiles it.

    sum_ladder, scan_ladder   one change at a time, in Numba and CUDA C side by side
    scan_lookback             the scan in one pass, in Numba
    reductions, sum_precise   other operations, and what float32 keeps of a long sum, in Numba
    scan_uses                 compaction, run lengths, row offsets, segments, in both
    photo                     a photograph whose pixels arrive in the wrong order
    sums, scans, sorts        launch the fast kernels
    cub, bench                the rival, and the race with it
"""
