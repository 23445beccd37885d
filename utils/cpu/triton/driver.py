"""What Triton asks a GPU for, answered where there is none: nothing is measured, nothing known."""

import math
import warnings


def do_bench(
    fn,
    warmup=25,
    rep=100,
    grad_to_none=None,
    quantiles=None,
    return_mode="mean",
):
    """Run `fn` once and return NaN (one for each quantile): there is no GPU to time."""
    fn()
    warnings.warn("no GPU: do_bench ran the function once and measured nothing (NaN)", stacklevel=2)
    if quantiles is not None:
        return [math.nan] * len(quantiles) if len(quantiles) > 1 else math.nan
    return [math.nan] if return_mode == "all" else math.nan


def _tune(kernel_call, quantiles=None):
    """What autotune times a configuration with: it runs, and all are equally good."""
    kernel_call()
    return [0.0] * len(quantiles) if quantiles else 0.0


class CPUDriver:
    """What triton.runtime.driver.active is: tensors live on the CPU."""

    def get_active_torch_device(self):
        import torch

        return torch.device("cpu")

    def get_current_target(self):
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cpu", 0, 0)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0

    def get_benchmarker(self):
        return _tune

    @property
    def utils(self):
        raise RuntimeError("there is no GPU: its properties cannot be asked for")


def correct_driver(module):
    module.driver.set_active(CPUDriver())


def correct_testing(module):
    module.do_bench = do_bench

    def do_bench_cudagraph(fn, rep=20, grad_to_none=None, quantiles=None, return_mode="mean"):
        return do_bench(fn, quantiles=quantiles, return_mode=return_mode)

    module.do_bench_cudagraph = do_bench_cudagraph
