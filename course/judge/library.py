"""Did a library compute what the candidate claims to compute?

Names are put into groups: who was to write a softmax and calls `torch.log_softmax` has not written
one. Which groups count for a task follows from what its reference itself calls, unless the demands
name them.
"""

import contextlib
import dis
import re
import sys

from course.judge.report import Reason

#: group -> names, of NumPy's functions and methods and of PyTorch's operations (aten)
GROUPS = {
    "matrix products": (
        "@ matmul dot inner vdot tensordot einsum multi_dot linear mm bmm addmm baddbmm addbmm"
        " mv addmv _int_mm _scaled_mm addr matrix_power chain_matmul _sparse_mm sparse_mm mspmm"
        " bilinear _trilinear embedding_bag _embedding_bag _embedding_bag_forward_only"
        " __matmul__ __rmatmul__ __imatmul__ imatmul sgemm dgemm hgemm gemm gemv sgemv matvec"
        " vecmat vecdot matrix asmatrix bmat cdist _cdist_forward _euclidean_dist lstm gru"
        " rnn_tanh"
    ),
    "convolutions": (
        "convolve correlate convolution _convolution cudnn_convolution conv1d conv2d conv3d"
        " mkldnn_convolution convolution_overrideable conv_transpose2d fftconvolve unfold im2col"
        " fold slow_conv3d thnn_conv2d _slow_conv2d_forward"
    ),
    "softmax": (
        "softmax _softmax log_softmax _log_softmax special_softmax _safe_softmax"
        " softmax_backward_data logsumexp"
    ),
    "normalisation": (
        "layer_norm native_layer_norm batch_norm native_batch_norm group_norm rms_norm"
        " native_group_norm _fused_rms_norm instance_norm cudnn_batch_norm"
        " _native_batch_norm_legit _batch_norm_impl_index"
    ),
    "attention": (
        "scaled_dot_product_attention _scaled_dot_product_attention_math"
        " _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu"
        " _scaled_dot_product_efficient_attention _flash_attention_forward"
        " _native_multi_head_attention"
    ),
    "sorting": (
        "sort argsort partition argpartition unique topk kthvalue msort _unique2 unique_dim"
        " lexsort searchsorted bucketize sort_complex sorted nsmallest nlargest heapify heappop"
    ),
    "scans": (
        "cumsum cumprod logcumsumexp cummax cummin cumulative_sum cumulative_trapezoid accumulate"
    ),
    "transforms": (
        "fft ifft rfft irfft fft2 ifft2 rfft2 fftn ifftn rfftn irfftn _fft_r2c _fft_c2c _fft_c2r"
        " dct idct"
    ),
    "linear algebra": (
        "inv solve svd qr eig eigh cholesky det lstsq pinv linalg_inv_ex _linalg_svd linalg_qr"
        " _linalg_eigh linalg_cholesky_ex _linalg_solve_ex linalg_lu_factor_ex"
    ),
    "losses": (
        "cross_entropy nll_loss nll_loss_forward mse_loss binary_cross_entropy kl_div"
        " cross_entropy_loss huber_loss smooth_l1_loss l1_loss triplet_margin_loss"
        " cosine_embedding_loss binary_cross_entropy_with_logits"
    ),
    "pooling": (
        "max_pool2d max_pool2d_with_indices avg_pool2d adaptive_avg_pool2d _adaptive_avg_pool2d"
        " max_pool3d_with_indices avg_pool3d max_pool1d avg_pool1d"
    ),
    "histograms": ("histogram bincount histc"),
    "reductions": (
        "sum mean prod std var amax amin max min argmax argmin median norm linalg_vector_norm"
        " var_mean std_mean trapezoid"
    ),
}
GROUPS = {group: frozenset(names.split()) for group, names in GROUPS.items()}
#: Who was to write one of these has not by calling another of the same line
FAMILIES = (
    {"matrix products", "convolutions", "attention", "linear algebra"},
    {"softmax", "attention", "losses"},
    {"sorting", "histograms"},
    {"scans", "convolutions", "matrix products"},
    {"convolutions", "pooling", "transforms"},
)
#: Other libraries that compute arrays
ELSEWHERE = (
    "scipy cupy jax sklearn tensorflow numexpr cudf cuml mxnet onnxruntime tvm xformers flash_attn"
    " cublas cudnn nvmath cutlass flashinfer liger_kernel apex bottleneck pandas polars"
).split()
#: These count only where a task is nothing else
LIGHT = ("reductions",)
#: Libraries that CUDA C and C++ texts call
IN_C = {
    "cublas": "matrix products",
    "cudnn": "convolutions",
    "cufft": "transforms",
    "cub::": "sorting, scans and reductions",
    "thrust::": "sorting, scans and reductions",
    "cusolver": "linear algebra",
    "cusparse": "matrix products",
}


def group_of(name):
    """The group of a name such as "aten.mm", "numpy.matmul" or "matmul"; or the name alone."""
    last = name.rpartition(".")[2]
    return next((group for group, names in GROUPS.items() if last in names), None)


def forbidden(demands, reference, arguments):
    """group -> names that must not compute the result."""
    if demands.library != "reference":
        groups = {group_of(name) or name for name in demands.library}
        single = {name: {name.rpartition(".")[2]} for name in groups - GROUPS.keys()}
        return single | of_families(groups & GROUPS.keys())
    used = calls_of(reference, arguments)
    found = {group for group, names in GROUPS.items() if names & used}
    return of_families(found - set(LIGHT) or found)


def of_families(groups):
    """group -> names for these groups and those of the same line."""
    wanted = set(groups)
    for family in FAMILIES:
        if family & groups:
            wanted |= family
    return {group: names for group, names in GROUPS.items() if group in wanted}


def calls_of(function, arguments):
    """Names that a function calls: as its code has them, and as PyTorch's dispatcher sees them."""
    used = set(names_in(function))
    torch = sys.modules.get("torch")
    if torch is None:
        return used
    from torch.utils._python_dispatch import TorchDispatchMode

    class Noting(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls):
            return False  # else PyTorch's compiler is imported, which takes longer than the judge

        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            used.add(str(operation).removeprefix("aten.").partition(".")[0])
            return operation(*args, **(kwargs or {}))

    with Noting(), contextlib.suppress(Exception):
        function(*arguments)
    return used


def names_in(function):
    """Names in a function's code, in what it contains and in the functions that it calls by name;
    "@" for the operator."""
    seen, todo = set(), [function]
    while todo:
        one = todo.pop()
        one = getattr(one, "forward", one) if not hasattr(one, "__code__") else one
        code = getattr(one, "__code__", one if hasattr(one, "co_code") else None)
        if code is None or code in seen:
            continue
        seen.add(code)
        known = getattr(one, "__globals__", {})
        for instruction in dis.get_instructions(code):
            if instruction.opname == "BINARY_OP" and "@" in instruction.argrepr:
                yield "@"
            if isinstance(instruction.argval, str):
                yield instruction.argval
                inner = known.get(instruction.argval)
                if hasattr(inner, "__code__"):
                    todo.append(inner)
        todo += [part for part in code.co_consts if hasattr(part, "co_code")]


def reasons(given, trials, facts):
    """The reason why a library computed the result, or none."""
    ruled_out = trials.ruled_out
    if not ruled_out:
        return []
    counts = {}
    for one in trials.done:
        for name, count in {
            **one.notes.get("operations", {}),
            **one.notes.get("numpy", {}),
        }.items():
            counts[name.rpartition(".")[2]] = counts.get(name.rpartition(".")[2], 0) + count
    for group, names in ruled_out.items():
        ran = sorted(names & counts.keys())
        if ran:
            times = counts[ran[0]]
            says = f"In {len(trials.done)} calls `{ran[0]}` ran {times} times ({group})."
            evidence = {"group": group, "calls": {name: counts[name] for name in ran}}
            return [Reason.of("library", says, evidence)]
        written = sorted(names & facts.called.keys())
        if written:
            line = facts.called[written[0]]
            says = f"Line {line} calls `{written[0]}` ({group})."
            return [Reason.of("library", says, {"group": group})]
    other = [name for name in ELSEWHERE if name in facts.imported]
    if other:
        says = f"Line {facts.imported[other[0]]} imports `{other[0]}`."
        return [Reason.of("library", says)]
    if "torch.compile" in facts.used:
        says = f"Line {facts.used['torch.compile']} lets `torch.compile` write the kernels."
        return [Reason.of("library", says)]
    return in_c(given, set().union(*ruled_out.values()))


#: A call of PyTorch's functions in C++
CALL_IN_C = re.compile(r"\b(?:at|torch|functional|F)::(\w+)\s*\(")


def in_c(given, names):
    """The reason for a library that a text in C++ calls."""
    for match in CALL_IN_C.finditer(given.source):
        if match[1] in names:
            line = given.source[: match.start()].count("\n") + 1
            return [Reason.of("library", f"Line {line} calls `{match[0]}…)`.")]
    for word, group in IN_C.items():
        if word in given.source.lower():
            line = given.source.lower()[: given.source.lower().index(word)].count("\n") + 1
            says = f"Line {line} speaks of {word.strip(':')} ({group})."
            return [Reason.of("library", says, {"group": group})]
    return []
