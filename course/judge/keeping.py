"""Inside the candidate's process: what a candidate keeps from one call to the next.

A number that is another after each call with the same values can count calls. A copy of a result is
kept to be returned once more.
"""

import functools
import itertools
import sys
import types

import numpy as np

DEEPEST = 5
MOST = 20_000  # things that are looked at
LEAST_BYTES = 16  # of a result, to be known again
#: Iterators that count, and show how far they are
COUNTERS = (itertools.count, itertools.cycle, range)
OTHER = 0x5A  # what every byte of a kept copy is set to
LENGTH = " (how long it is)"
PLAIN = (bool, int, float, complex, str, bytes)


def reached(roots):
    """(path, thing) of all that a candidate's module or function holds on to."""
    seen, todo, count = set(), [(name, one, 0) for name, one in roots], 0
    while todo and count < MOST:
        path, one, depth = todo.pop()
        count += 1
        yield path, one
        if id(one) in seen or depth > DEEPEST or isinstance(one, PLAIN):
            continue
        seen.add(id(one))
        todo += [(f"{path}{step}", inner, depth + 1) for step, inner in inside(one)]


def inside(one):
    """(step, thing) of what a thing of the candidate's holds; nothing of what is a library's."""
    if isinstance(one, dict):
        keys = [("'s keys", key) for key in one if not isinstance(key, str)]
        return keys + [(f"[{key!r:.20}]", value) for key, value in one.items()]
    if isinstance(one, list | tuple | set | frozenset):
        return [("[…]", value) for value in list(one)[:MOST]]
    if isinstance(one, types.FunctionType):
        cells = [cell for cell in one.__closure__ or ()]
        held = [(f"'s {name}", value) for name, value in vars(one).items()]
        held += [("'s defaults", one.__defaults__), ("'s defaults", one.__kwdefaults__)]
        return held + [("'s variable", contents(cell)) for cell in cells]
    if isinstance(one, types.MethodType):
        return [("", one.__func__), ("", one.__self__)]
    if isinstance(one, functools._lru_cache_wrapper):
        return [("", one.__wrapped__)]
    if isinstance(one, types.ModuleType):
        return []
    own = getattr(type(one), "__module__", None)
    if isinstance(one, type):
        return [(f".{k}", v) for k, v in vars(one).items()] if own_class(one) else []
    torch = sys.modules.get("torch")
    is_model = torch is not None and isinstance(one, torch.nn.Module)
    if own in ("submission", "__main__") or is_model:
        return [(f".{name}", value) for name, value in vars_of(one).items()]
    return []


def own_class(one):
    """Whether a class is the candidate's."""
    return one.__module__ in ("submission", "__main__")


def vars_of(one):
    """What an object holds, in its dictionary and its slots."""
    found = dict(getattr(one, "__dict__", {}))
    for cls in type(one).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(one, name):
                found[name] = getattr(one, name)
    return found


def contents(cell):
    """What a variable around a function holds."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def numbers(roots):
    """path -> what tells that something counts: numbers, lengths, how far an iterator is."""
    found = {}
    for path, one in reached(roots):
        if isinstance(one, PLAIN):
            found[path] = one if not isinstance(one, bytes | str) else hash(one)
        elif type(one).__module__ == "utils.cuda_c" and type(one).__name__ == "Module":
            found[path] = lasting(one)
        elif isinstance(one, COUNTERS):
            found[path] = repr(one)
        elif isinstance(one, dict | list | set):
            found[path + LENGTH] = len(one)
        elif isinstance(one, functools._lru_cache_wrapper):
            found[path] = one.cache_info().hits
        elif isinstance(one, types.GeneratorType):
            found[path] = one.gi_frame.f_lasti if one.gi_frame else -1
        elif isinstance(one, np.ndarray) and one.size <= 8 and one.dtype.kind in "iu":
            found[path] = one.tobytes()
    return found


def advance(roots, variables, path, by):
    """Let a whole number that the candidate keeps be larger, as after so many calls.

    variables: of its module, by name. Returns whether it could be set.
    """
    done = False
    for name, one in [("", variables), *reached(roots)]:
        if isinstance(one, np.ndarray) and name == path:
            one += by
            done = True
            continue
        for step, key, holder in places(one, name):
            if f"{name}{step}" == path and type(holder[key]) is int:
                holder[key] += by
                done = True
    return done


def places(one, name):
    """(step, key, dictionary or list) of what a thing holds and where it may be changed."""
    if isinstance(one, dict):
        return [(f"[{key!r:.20}]" if name else key, key, one) for key in list(one)]
    if isinstance(one, list):
        return [("[…]", number, one) for number in range(len(one))]
    if isinstance(one, types.FunctionType):
        return [(f"'s {key}", key, vars(one)) for key in vars(one)]
    if getattr(type(one), "__module__", None) in ("submission", "__main__"):
        held = getattr(one, "__dict__", {})
        return [(f".{key}", key, held) for key in held]
    return []


def of_launches(roots):
    """What the engine says of the last launch of CUDA C, where it watches: how many blocks of
    memory it took and did not give back and, where device variables hold something, accesses to
    memory of its busiest thread.
    """
    found = {}
    for _, one in roots:
        if type(one).__module__ == "utils.cuda_c" and type(one).__name__ == "Module":
            try:
                counts = one.counts()
            except Exception:  # it was not built to be watched, or never ran
                continue
            found["heap"] = counts["heap"]
            if counts["lasting"]:
                found["accesses"] = counts["busiest"]
    return found


def lasting(module):
    """What CUDA C leaves in variables of the device, where the engine watches them."""
    try:
        return module.counts()["lasting"]
    except Exception:  # it was not built to be watched, or never ran
        return 0


def grown(before, after):
    """The path of something that holds more than before, or ""."""
    names = [n for n in before if n.endswith(LENGTH) and after.get(n, 0) > before[n]]
    return min(names, key=len).removesuffix(LENGTH) if names else ""


def changed(before, after):
    """The path of something that is another than before, or ""."""
    names = [name for name in before if name in after and before[name] != after[name]]
    return min(names, key=len).removesuffix(LENGTH) if names else ""


def copies(roots, results, overlap):
    """(path, thing, data) of the copies of results that the candidate holds."""
    wanted = {}
    for one, data in results:
        if data is not None and len(data) >= LEAST_BYTES and len(set(data)) > 8:
            wanted[data] = one
    for path, one in reached(roots) if wanted else ():
        data = data_of(one)
        if data is None or len(data) < min(map(len, wanted)):
            continue
        for part in wanted:
            if part in data and not overlap(one, wanted[part]):
                yield path, one, part


def overwrite(roots, results, overlap):
    """Overwrite each copy of a result, where it can be: who returns it, returns something else."""
    for _, one, part in copies(roots, results, overlap):
        array = one if isinstance(one, np.ndarray) else None
        if type(one).__name__ == "DeviceNDArray":
            one.copy_to_device(changed_bytes(one.copy_to_host(), part))
        elif array is None and not isinstance(one, bytes | bytearray):
            array = one.detach().numpy()
        if array is not None and array.flags.writeable and array.flags.c_contiguous:
            changed_bytes(array, part)


def changed_bytes(array, part):
    """An array in which these of its bytes are others."""
    raw = array.reshape(-1).view(np.uint8)
    at = raw.tobytes().index(part)
    raw[at : at + len(part)] = OTHER
    return array


def data_of(one):
    """The bytes of an array, a tensor or a text of bytes; None for anything else."""
    if isinstance(one, bytes | bytearray):
        return bytes(one)
    if type(one) is np.ndarray:
        return one.tobytes()
    if type(one).__name__ == "DeviceNDArray":  # Numba's, in which a function may keep it as well
        return np.asarray(one.copy_to_host()).tobytes()
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(one, torch.Tensor) and one.device.type == "cpu":
        with torch.no_grad():
            flat = one.detach().contiguous().reshape(-1)
            return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return None
