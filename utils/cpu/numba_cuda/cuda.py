"""The stand-in for the module `numba.cuda`: what `from numba import cuda` gives, by its names."""

import importlib as _importlib
import sys as _sys
import types as _types

from numba import types  # noqa: F401
from numba.core.types import *  # noqa: F403

from . import errors, fp16, host, libdevice, memory, random, reduction, vector_types  # noqa: F401
from . import kernel_api as _api
from .arguments import In, InOut, Out  # noqa: F401
from .atomics import atomic  # noqa: F401
from .bits import brev, cbrt, clz, ffs, fma, popc, selp  # noqa: F401
from .dispatcher import jit  # noqa: F401
from .errors import CudaSupportError, KernelRuntimeError  # noqa: F401
from .host import (  # noqa: F401
    close,
    cuda_error,
    current_context,
    default_stream,
    defer_cleanup,
    detect,
    event,
    event_elapsed_time,
    external_stream,
    get_current_device,
    gpus,
    is_available,
    is_bfloat16_supported,
    is_float16_supported,
    is_fp8_supported,
    is_supported_version,
    legacy_default_stream,
    list_devices,
    per_thread_default_stream,
    profile_start,
    profile_stop,
    profiling,
    require_context,
    select_device,
    stream,
    synchronize,
)
from .kernel_api import (  # noqa: F401
    const,
    grid,
    gridsize,
    local,
    nanosleep,
    shared,
    syncthreads,
    syncthreads_and,
    syncthreads_count,
    syncthreads_or,
    threadfence,
    threadfence_block,
    threadfence_system,
)
from .memory import (  # noqa: F401
    as_cuda_array,
    device_array,
    device_array_like,
    from_cuda_array_interface,
    is_cuda_array,
    managed_array,
    mapped,
    mapped_array,
    mapped_array_like,
    pinned,
    pinned_array,
    pinned_array_like,
    to_device,
)
from .reduction import Reduce
from .settings import WARP as warpsize  # noqa: F401
from .state import block_dim as blockDim  # noqa: F401
from .state import block_idx as blockIdx  # noqa: F401
from .state import grid_dim as gridDim  # noqa: F401
from .state import in_kernel as _in_kernel
from .state import now as _now
from .state import thread_idx as threadIdx  # noqa: F401
from .warps import (  # noqa: F401
    activemask,
    all_sync,
    any_sync,
    ballot_sync,
    eq_sync,
    lanemask_lt,
    match_all_sync,
    match_any_sync,
    shfl_down_sync,
    shfl_sync,
    shfl_up_sync,
    shfl_xor_sync,
    syncwarp,
)
from .warps import laneid as _laneid

implementation = "CPU engine"
reduce = Reduce
HAS_NUMBA = True

for _vector in vector_types.vector_types.values():
    globals().update(dict.fromkeys((_vector.name, *_vector.aliases), _vector))


class _Module(_types.ModuleType):
    """Makes cuda.laneid, which is no call, give the running thread's lane."""

    @property
    def laneid(self):
        return _now.rank % warpsize if _in_kernel() else _laneid


_sys.modules[__name__].__class__ = _Module


def declare_device(name, sig, link=None, **options):
    raise NotImplementedError(
        f"declare_device({name!r}): foreign GPU functions cannot be linked on the CPU engine"
    )


def _no_linking(*args, **kwargs):
    raise NotImplementedError(
        "there is no GPU linker here: foreign GPU code needs a machine with a GPU"
    )


Archive = CUSource = Cubin = Fatbin = LinkableCode = LTOIR = Object = PTXSource = _no_linking


def _no_ptx(*args, **kwargs):
    raise NotImplementedError(
        "there is no GPU compiler here: PTX and SASS need a machine with a GPU"
    )


compile = compile_ptx = compile_for_current_device = compile_ptx_for_current_device = (
    compile_all
) = _no_ptx
ldca = ldcg = ldcs = ldlu = ldcv = lambda array, index: array[index]


def _store(array, index, value):
    array[index] = value


stcg = stcs = stwb = stwt = _store


def _module(name, **contents):
    module = _types.ModuleType(
        f"numba.cuda.{name}", f"Stand-in for numba.cuda.{name} on the CPU engine."
    )
    module.__dict__.update(contents)
    return module


cg = _module("cg", this_grid=_api.this_grid, GridGroup=_api.GridGroup)
args = _module("args", In=In, Out=Out, InOut=InOut)
compiler = _module("compiler", compile=compile, compile_ptx=compile_ptx, compile_all=compile_all)
cudadrv = _module("cudadrv")
cudadrv.error = _module(
    "cudadrv.error",
    **{
        name: getattr(errors, name)
        for name in ("CudaDriverError", "CudaRuntimeError", "CudaSupportError")
    },
)
cudadrv.driver = _module(
    "cudadrv.driver",
    CudaAPIError=errors.CudaAPIError,
    CudaDriverError=errors.CudaDriverError,
    driver=_types.SimpleNamespace(get_device=lambda device=None: gpus[device or 0]),
    Stream=host.Stream,
    Event=host.Event,
    Device=host.Device,
    event_elapsed_time=event_elapsed_time,
)
cudadrv.devicearray = _module(
    "cudadrv.devicearray",
    **{
        name: getattr(memory, name)
        for name in (
            "DeviceNDArray",
            "DeviceRecord",
            "MappedNDArray",
            "ManagedNDArray",
            "to_device",
            "device_array",
            "from_array_like",
            "pinned_array",
            "mapped_array",
        )
    },
)
cudadrv.devicearray.is_cuda_ndarray = lambda obj: getattr(obj, "__cuda_ndarray__", False)
devicearray = cudadrv.devicearray
cudadrv.devices = _module(
    "cudadrv.devices", gpus=gpus, get_context=current_context, require_context=require_context
)
cudadrv.runtime = _module(
    "cudadrv.runtime",
    runtime=_types.SimpleNamespace(
        get_version=lambda: (0, 0), is_supported_version=is_supported_version
    ),
)
runtime = cudadrv.runtime.runtime

kernels = _module("kernels", reduction=reduction, __path__=[])  # Numba's transpose joins them

SUBMODULES = {
    "kernels": kernels,
    "kernels.reduction": reduction,
    "vector_types": vector_types,
    "cg": cg,
    "args": args,
    "compiler": compiler,
    "random": random,
    "libdevice": libdevice,
    "fp16": fp16,
    "errors": errors,
    "types": types,
    "cudadrv": cudadrv,
    **{
        f"cudadrv.{name}": getattr(cudadrv, name)
        for name in ("error", "driver", "devicearray", "devices", "runtime")
    },
}


def __getattr__(name):
    """Numba's own modules that `install` serves beside this one."""
    if name in ("deviceufunc", "vectorizers"):
        return _importlib.import_module(f"numba.cuda.{name}")
    raise AttributeError(f"the CPU engine has no cuda.{name}")


def vectorize(ftylist_or_function=(), target="cuda", **options):
    """numba.vectorize for this target: its ufuncs launch kernels of this engine."""
    from numba import vectorize as of_numba

    return of_numba(ftylist_or_function, target=target, **options)


def guvectorize(*args, target="cuda", **options):
    """numba.guvectorize for this target."""
    from numba import guvectorize as of_numba

    return of_numba(*args, target=target, **options)
