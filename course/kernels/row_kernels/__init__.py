"""Kernels that work on the rows of a matrix: softmax, cross-entropy, layer norm and RMS norm.

    from course.kernels.row_kernels.softmax import softmax
    from course.kernels.row_kernels.norms import layer_norm, layer_norm_backward
    from course.kernels.row_kernels.norms import rms_norm, rms_norm_backward
    from course.kernels.row_kernels.cross_entropy import cross_entropy, loss_and_gradient

`kernels/softmax.cu`, `norms.cu` and `cross_entropy.cu` are short and run everywhere, without a GPU
too. `kernels/fast*.cu` read each row once whatever its length, on Hopper and later,
`kernels/short*.cu` take rows through shared memory, wherever they begin, and `split_norms.cu` cuts
long rows across the columns: the functions pick them where they can be used. `shapes.py` says how
rows are dealt, `grid.py` whether that holds for shapes that nobody tuned for, and `choosing.py` how
such a choice is made, in small.
"""
