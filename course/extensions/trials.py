"""How the exercises of the chapter PyTorch extensions are tried: each answer really runs."""

import gc
import itertools
import math
import tracemalloc
import weakref

import torch
from torch.autograd import profiler_legacy
from torch.multiprocessing.reductions import StorageWeakRef

from course.extensions.judging import Finding
from course.extensions.streams import ORDERS, Model

#: Elements of the two x whose calls are weighed, and of how many times y's memory kept is too much
SIZES, MORE = (1 << 8, 1 << 12), 1.05
#: Tries that must all find it: Python, too, keeps things now and then
TRIES = 3
#: Bytes besides, of objects that any call makes: three times what there are
ALWAYS = 1 << 15

numbers = itertools.count()  # each operator that is tried gets a name of its own

# ---- saved: what the backward pass needs


def scaled_tanh(setup):
    """y = scale · tanh(x) as a torch.autograd.Function whose setup_context is the answer."""

    def forward(x, scale):
        return scale * torch.tanh(x)

    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        return dy * (ctx.scale - y * y / ctx.scale), None

    methods = {
        "forward": forward,
        "backward": backward,
        "setup_context": setup,
    }
    static = {name: staticmethod(method) for name, method in methods.items()}
    return type("ScaledTanh", (torch.autograd.Function,), static).apply


def judge_saved(answer, rng):
    apply = scaled_tanh(answer)
    x = torch.tensor(rng.normal(size=(3, 4)), requires_grad=True)
    scale = float(rng.uniform(1.5, 3))
    return (
        wrong_number_saved(apply, x, scale)
        or wrong_slope(apply, x, scale)
        or wrong_slope(apply, x, -scale)
        or wasted_memory(apply, x, scale)
        or input_kept(apply, x, scale)
        or unnoticed_change(apply, x, scale)
        or unnoticed_change(apply, x.detach().float().requires_grad_(), scale)
        or copy_kept(apply, scale)
        or never_freed(apply, x, scale)
        or wrong_second_slope(apply, x, scale)
    )


def wrong_number_saved(apply, x, scale):
    """A Finding where backward's `(kept,) = ctx.saved_tensors` would stop: it takes one tensor."""
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        apply(x, scale)
    if len(saved) == 1:
        return None
    says = (
        f"Backward's `(kept,) = ctx.saved_tensors` takes one tensor, and finds {len(saved)} there."
    )
    if not saved:
        says += " What it reads must go through `ctx.save_for_backward(...)`."
    return Finding("crashed", says)


def wrong_slope(apply, x, scale):
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        y = apply(x, scale)
    if not hasattr(y.grad_fn, "scale"):
        says = "Backward reads `ctx.scale`, and nobody has put it there."
        return Finding("crashed", says)
    (dx,) = torch.autograd.grad(y.sum(), x)
    exact = scale / torch.cosh(x.detach()) ** 2
    if not torch.allclose(dx, exact):
        largest = (dx - exact).abs().max().item()
        says = f"The gradient of scale · tanh(x) is off by {largest:.2g}."
        return Finding("wrong_value", says + instead_of_y(kept[0], x.detach(), scale))
    return None


def instead_of_y(kept, x, scale):
    """What to say of a tensor that was kept in place of y; "" where it is no known one."""
    others = {"x": x, "tanh(x), which is y / scale": torch.tanh(x)}
    for name, other in others.items():
        if kept.shape == other.shape and torch.allclose(kept.to(other.dtype), other):
            return f" You keep {name}; the formula is written for y itself."
    return ""


def wasted_memory(apply, x, scale):
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        y = apply(x, scale)
    if sum(tensor.nbytes for tensor in kept) > y.nbytes:
        says = f"It keeps {len(kept)} tensors until the backward pass. One is read there."
        return Finding("wrong_size", says)
    return None


def input_kept(apply, x, scale):
    """A Finding if x's memory lives on although nobody but y's backward pass could hold it."""
    x = x.clone()  # not a leaf: autograd holds leaves itself, to hand them their gradient
    memory = StorageWeakRef(x.untyped_storage())
    y = apply(x, scale)
    del x
    kept = not memory.expired()
    del y
    if kept:
        says = "As long as y is there, x is, too: something holds it that backward never reads."
        return Finding("wrong_size", says)
    return None


def unnoticed_change(apply, x, scale):
    y = apply(x, scale)
    with torch.no_grad():
        y.mul_(2)
    try:
        torch.autograd.grad(y.sum(), x)
    except RuntimeError:
        return None
    says = "y was changed in place before the backward pass, and PyTorch did not notice: it looks "
    return Finding("wrong_value", says + "after tensors that went through `save_for_backward`.")


def copy_kept(apply, scale):
    """A Finding if more than y lives as long as y, be it a tensor, a list or an array."""
    apply(torch.ones(SIZES[0], dtype=torch.float64, requires_grad=True), scale)  # made once
    for _ in range(TRIES):
        finding = kept_beside(apply, scale)
        if finding is None:
            break
    return finding


def kept_beside(apply, scale):
    """What one try says. Two calls tell what grows with x from what is always there."""
    few, many = SIZES
    at_first = bytes_alive(apply, few, scale)
    if at_first > few * torch.float64.itemsize + ALWAYS:
        says = f"With a y of {few} numbers, {at_first:,} bytes stay. Backward reads one tensor."
        return Finding("wrong_size", says)
    grown = bytes_alive(apply, many, scale) - at_first
    needed = (many - few) * torch.float64.itemsize
    if grown > needed * MORE:
        says = f"With y, {grown / needed:.2g} times y's memory stays. Backward reads one tensor."
        return Finding("wrong_size", says)
    return None


def bytes_alive(apply, size, scale):
    """Bytes, PyTorch's and Python's, that a call takes and that are there as long as its result."""
    x = torch.ones(size, dtype=torch.float64, requires_grad=True)
    gc.collect()
    tracemalloc.start()
    try:
        # torch.profiler does the same, and writes lines of its own below the learner's cell
        with profiler_legacy.profile(profile_memory=True) as profile:
            y = apply(x, scale)
        gc.collect()
        python = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    del y
    return python + sum(event.self_cpu_memory_usage for event in profile.key_averages())


def never_freed(apply, x, scale):
    gc.disable()  # reference counts alone must do: a cycle keeps a GPU's memory for a long time
    try:
        y = apply(x, scale)
        watch = weakref.ref(y)
        del y
        alive = watch() is not None
        gc.collect()
        held = watch() is not None
    finally:
        gc.enable()
    if not alive:
        return None
    why = "something outside holds it." if held else "y holds ctx, and ctx holds y."
    return Finding("leak", f"Nobody needs y any more, and it is still there: {why}")


def wrong_second_slope(apply, x, scale):
    (dx,) = torch.autograd.grad(apply(x, scale).sum(), x, create_graph=True)
    known = dx.requires_grad and torch.autograd.gradgradcheck(
        lambda x: apply(x, scale), (x,), raise_exception=False
    )
    if known:
        return None
    says = "The gradient is right, but the gradient's gradient is not: what was kept is cut off."
    return Finding("wrong_value", says)


# ---- fake: what comes out, without computing it


def nearest(points: torch.Tensor, centers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The real operator: the nearest center of each point, and how far it is."""
    distance, index = (points[:, None] - centers).square().sum(-1).min(1)
    return index, distance.sqrt().to(points.dtype)


def judge_fake(answer, rng):
    points, centers = torch.empty(5, 3, device="meta"), torch.empty(2, 3, device="meta")
    return no_pair(answer(points, centers)) or compare_all(answer, rng)


def no_pair(said):
    """A Finding if a fake does not return two tensors."""
    if said is None:
        return Finding("no_return", "Is there a `return`?")
    pair = isinstance(said, tuple | list) and len(said) == 2
    if pair and all(isinstance(each, torch.Tensor) for each in said):
        return None
    return Finding("wrong_value", "It must return two tensors: `return index, distance`.")


def compare_all(answer, rng):
    name = f"exercise_fake_{next(numbers)}::nearest"
    operator = torch.library.custom_op(name, nearest, mutates_args=())
    operator.register_fake(answer)
    count = int(rng.integers(5, 9))
    types = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
    sizes = itertools.cycle([(count, 2, 3), (count, count + 3, 1), (1, 4, 2)])
    for dtypes, shape in zip(itertools.product(types, types), sizes, strict=False):
        for device in ("cpu", "meta"):
            finding = compare_fake(operator, shape, dtypes, device)
            if finding:
                return finding
    return not_traced(operator)


def compare_fake(operator, shape, dtypes, device):
    """A Finding if the answer says something else than what the operator gives.

    shape: how many points and centers, and of how many numbers each.
    """
    *counts, d = shape
    inputs = [torch.randn(n, d, dtype=dtype) for n, dtype in zip(counts, dtypes, strict=True)]
    right = operator(*inputs)
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
        given = [torch.empty(t.shape, dtype=t.dtype, device=device) for t in inputs]
        said = operator(*given)
    for what, fake, real in zip(("index", "distance"), said, right, strict=True):
        if fake.dtype != real.dtype:
            return Finding("wrong_dtype", f"{what} is {real.dtype}; the fake says {fake.dtype}.")
        if fake.shape != real.shape:
            sizes = f"{list(real.shape)}; the fake says {list(fake.shape)}"
            return Finding("wrong_shape", f"{what} has the shape {sizes}.")
        if fake.stride() != real.stride():
            strides = f"{real.stride()}; the fake says {fake.stride()}"
            return Finding("wrong_value", f"{what} lies in memory with the strides {strides}.")
        if fake.device.type != device:
            where = "on a device without memory (meta)" if device == "meta" else f"on {device}"
            lies = f"points lie {where}, {what} of the fake on {fake.device}"
            return Finding("wrong_value", f"What comes out lies where the input lies: {lies}.")
        if any(memory_of(fake) == memory_of(tensor) for tensor in given):
            says = f"{what} of the fake lies in an input's memory; the operator makes a new tensor."
            return Finding("other_means", says)
    return None


def memory_of(tensor):
    """What compares equal for tensors that share memory, even fake ones."""
    return StorageWeakRef(tensor.untyped_storage())


def not_traced(operator):
    """A Finding if a compiler cannot take the operator for any number of points."""
    from torch.fx.experimental.proxy_tensor import make_fx

    fixed = []

    def program(points, centers):
        index, distance = operator(points, centers)
        fixed.extend(is_fixed(out.shape[0]) for out in (index, distance))
        return distance + index

    inputs = torch.randn(5, 3), torch.randn(2, 3)
    graph = make_fx(program, tracing_mode="symbolic")(*inputs)
    if any(fixed):
        says = (
            "A tracer that wanted to take any n was told one number: `len` and `int` make n one."
            " `points.shape[0]` leaves it open."
        )
        return Finding("wrong_shape", says)
    other = torch.randn(7, 3), torch.randn(4, 3)
    if graph(*other).shape != (7,):
        return Finding("wrong_shape", "It is right for one number of points only.")
    return None


def is_fixed(size) -> bool:
    """Whether a tracer took this size for one number only, instead of a symbol."""
    return isinstance(size, int) or size.node.maybe_as_int() is not None


# ---- broadcast: a gradient has the shape of what it belongs to


SHAPES = (
    ((4, 3), (4, 3)),
    ((4, 3), (3,)),
    ((4, 3), (4, 1)),
    ((2, 1, 3), (5, 1)),
    ((), (3,)),
    ((6, 2), ()),
    ((0, 3), (3,)),
    ((3, 1), (2, 1, 4, 3, 2)),
    ((1,), (4, 3)),
    ((), (4, 3)),
    ((1, 1), (4, 3)),
    ((2, 3, 4), (1, 3, 1)),
)


def judge_broadcast(answer, rng):
    for shapes in SHAPES:
        x, scale = (torch.tensor(rng.normal(size=shape), requires_grad=True) for shape in shapes)
        y = x * scale
        dy = torch.tensor(rng.normal(size=y.shape))
        right = torch.autograd.grad(y, (x, scale), dy)
        given = dy, x.detach(), scale.detach()
        before = [tensor.clone() for tensor in given]
        finding = compare_gradients(answer(*given), right, shapes)
        finding = finding or changed(("dy", "x", "scale"), before, given)
        if finding:
            return finding
    return None


def changed(names, before, after):
    """A Finding for the first tensor that is not what it was before."""
    for name, old, new in zip(names, before, after, strict=True):
        if not torch.equal(old, new):
            says = f"`{name}` is different after the call: others may still need it as it was."
            return Finding("modifies_input", says)
    return None


def compare_gradients(got, right, shapes):
    """A Finding for the first gradient of x or scale that is not right."""
    if not isinstance(got, tuple) or len(got) != 2:
        return Finding("wrong_value", "Return two tensors: dx and dscale.")
    of = f"x {list(shapes[0])} · scale {list(shapes[1])}"
    for name, gradient, exact in zip(("dx", "dscale"), got, right, strict=True):
        if gradient.shape != exact.shape:
            sizes = f"{list(gradient.shape)}, not {list(exact.shape)}"
            return Finding("wrong_shape", f"In {of}, {name} has the shape {sizes}.")
        if not torch.allclose(gradient, exact):
            other = right[1] if exact is right[0] else right[0]
            why = instead_of_a_sum(gradient, exact, other, shapes)
            return Finding("wrong_value", f"In {of}, {name} has wrong values.{why}")
    return None


def instead_of_a_sum(gradient, exact, other, shapes):
    """The mistake that gives this gradient, in words; "" where it is no known one.

    other: the right gradient of the other input.
    """
    if gradient.shape == other.shape and torch.allclose(gradient, other):
        return " It is the gradient of the other input."
    places = math.prod(torch.broadcast_shapes(*shapes)) / max(1, exact.numel())
    if torch.allclose(gradient * places, exact):
        return " It is a mean. A number that is used in several places gets the *sum*."
    return ""


# ---- stream: two streams and a caching allocator


def judge_stream(answer, rng):
    came_first = set()
    for order, default in itertools.product((*ORDERS, *["random"] * 6), (True, False)):
        chosen = order, default, int(rng.integers(1 << 30)), float(rng.integers(2, 50))
        finding, ran = on_a_gpu(Model, answer, *chosen)
        if finding:
            return memory_alone(finding, answer, chosen) or finding
        came_first.add(ran[0])
    if len(came_first) == 1:
        says = f"{came_first.pop()} always runs first and the other one waits for it: nothing runs "
        return Finding("other_means", says + "side by side. Who needs to wait for whom?")
    return None


class NeverFrees(Model):
    """A GPU with memory for everybody: none is handed out again."""

    def free(self, block):
        pass


def on_a_gpu(kind, answer, order, default, seed, number):
    """What `try_streams` says on a new GPU, the default stream being the current one or not."""
    gpu = kind(order, seed=seed)
    with gpu.stream(gpu.default_stream() if default else gpu.Stream()):
        return try_streams(gpu, answer, number)


def memory_alone(finding, answer, chosen):
    """A Finding if all streams waited: where no memory is handed out again, the sum is right."""
    if finding.reason != "race" or on_a_gpu(NeverFrees, answer, *chosen)[0]:
        return None
    says = (
        "Every stream waits for what it needs, and still the sum is wrong: memory was handed out"
        " again while another stream still read it. Who reads what heavy's stream allocated?"
    )
    return Finding("race", says)


def try_streams(gpu, answer, number):
    """(a Finding or None, the names of heavy and light in the order in which they ran).

    It is wrong if what comes is not heavy(x) + light(x), or if all of it was on one stream.
    """
    used, read, here = {}, {}, gpu.current_stream()

    def on_stream(name, factor):
        used.setdefault(name, []).append(gpu.current_stream())

        def kernel(value):
            read[name] = value
            return factor * value

        return kernel

    x = gpu.full(number)
    out = answer(
        gpu,
        x,
        lambda x: gpu.launch(on_stream("heavy", 100), x),
        lambda x: gpu.launch(on_stream("light", 1), x),
    )
    if out is None:
        return Finding("no_return", "Is there a `return`?"), ()
    after = busy_neighbours(gpu)
    got = out.item()
    del after
    finding = wrong_streams(used, here) or read_early(read, number)
    finding = finding or wrong_sum(got, 101 * number)
    if not finding and out.block.stream is not gpu.current_stream():
        says = "The sum must be computed on the stream that was current before."
        finding = Finding("other_means", says)
    return finding, list(read)


def wrong_streams(used, here):
    """A Finding if heavy has no stream of its own. used: name -> the streams of its calls."""
    heavy, light = used.get("heavy", []), used.get("light", [])
    if len(heavy) != 1 or len(light) != 1 or heavy[0] is light[0]:
        return Finding("other_means", "heavy and light must run once each, on two streams.")
    if heavy[0] is here:
        says = "heavy runs on the stream that was current before: give it the one of its own."
        return Finding("other_means", says)
    return None


def read_early(read, number):
    """A Finding if a kernel saw another x than the one that is computed. read: name -> its x."""
    early = [name for name, value in read.items() if value != number]
    if not early:
        return None
    says = f"With another order of the streams {early[0]} reads x before it is there: its stream "
    return Finding("race", says + "waits for nobody.")


def wrong_sum(got, expected):
    """A Finding if the sum is not what it should be: then some stream did not wait."""
    if got == expected:
        return None
    if math.isnan(got):
        says = "With another order of the streams the sum reads what nobody has written yet."
        return Finding("race", says)
    says = f"With another order of the streams the sum is {got:g} instead of {expected:g}. "
    return Finding("race", says + "Does it wait for both?")


def busy_neighbours(gpu):
    """Other users of every stream, who take whatever memory is free and write to it."""
    taken = []
    for stream in list(gpu.streams):
        with gpu.stream(stream):
            taken += [gpu.full(-1.0) for _ in range(3)]
    return taken


# ---- in place: say what you change


def update(
    values: torch.Tensor,
    momentum: torch.Tensor,
    grads: torch.Tensor,
    rate: float,
) -> None:
    """A step of gradient descent with momentum, in place."""
    momentum.mul_(0.9).add_(grads)
    values.sub_(rate * momentum)


def judge_in_place(answer, rng):
    name = f"exercise_update_{next(numbers)}::update"
    operator = answer(name, update)
    if not isinstance(operator, torch.library.CustomOpDef):
        return Finding("not_a_kernel", "Return what `torch.library.custom_op` returns.")
    if operator._qualname != name:
        return Finding("wrong_value", f"The operator must be called {name}.")
    return (
        on_one_device(operator)
        or unannounced(operator)
        or announced_too_much(operator)
        or another_step(operator, rng)
        or behaves(operator)
    )


def arguments_of(operator):
    """Argument -> whether the schema says that it is changed."""
    schema = operator._opoverload._schema
    written = {}
    for argument in schema.arguments:
        written[argument.name] = bool(argument.alias_info and argument.alias_info.is_write)
    return written


def on_one_device(operator):
    """A Finding if only the CPU, or only a GPU, has the operator."""
    for device in ("CPU", "CUDA"):
        if not torch._C._dispatch_has_computed_kernel_for_dispatch_key(operator._qualname, device):
            return Finding(
                "wrong_value", f"It must be there wherever `update` runs: not on {device}."
            )
    return None


def unannounced(operator):
    said = arguments_of(operator)
    missing = [name for name in ("values", "momentum") if not said.get(name)]
    if missing:
        names = " and ".join(missing)
        change = "change" if len(missing) > 1 else "changes"
        says = (
            f"{names} {change}, and the schema does not say so: a compiler may use the old values."
        )
        return Finding("unannounced", says)
    return None


def announced_too_much(operator):
    if arguments_of(operator).get("grads"):
        says = "grads is only read. Who says that it changes makes compilers copy it, and refuses "
        return Finding("other_means", says + "tensors that must not change.")
    return None


def another_step(operator, rng):
    """A Finding unless the operator does what `update` does, at a low and a high rate."""
    for rate in rng.uniform((0.1, 2), (0.9, 50)).tolist():
        inputs = [torch.tensor(rng.normal(size=6)) for _ in range(3)]
        right = [tensor.clone() for tensor in inputs]
        update(*right, rate)
        operator(*inputs, rate)
        for name, got, exact in zip(("values", "momentum", "grads"), inputs, right, strict=True):
            if not torch.allclose(got, exact):
                says = f"With the rate {rate:.2f}, it leaves other {name} behind than `update`."
                return Finding("wrong_value", says)
        if inputs[-1]._version or refuses_one_for_all(operator, rate):
            says = "grads is written to, if only with what it held, and the schema does not say so."
            return Finding("unannounced", says)
    return None


def refuses_one_for_all(operator, rate):
    """Whether it writes to grads, which PyTorch refuses where all elements lie in one place.

    Before PyTorch 2.13 a tensor's version does not tell what an operator writes.
    """
    one_for_all = torch.ones(1, dtype=torch.float64).expand(6)
    try:
        operator(torch.zeros(6).double(), torch.zeros(6).double(), one_for_all, rate)
    except RuntimeError as error:
        return "single memory location" in str(error)
    return False


def behaves(operator):
    """A Finding unless a compiled program does what the same program does without compiling."""

    def program(values, momentum, grads):
        before = values * 2
        operator(values, momentum, grads, 0.1)
        return before + values + momentum

    inputs = [torch.randn(6) for _ in range(3)]
    compiled = torch.compile(program, fullgraph=True, backend="aot_eager")
    eager_inputs = [tensor.clone() for tensor in inputs]
    eager = program(*eager_inputs)
    traced = compiled(*inputs)
    torch._dynamo.reset()
    if not torch.allclose(eager, traced):
        return Finding("wrong_value", "Compiled, a program that calls it gives something else.")
    if not all(map(torch.equal, inputs, eager_inputs)):
        return Finding("wrong_value", "Compiled, it leaves other values behind.")
    return None


# ---- register: the gradient of an operator


def values(x: torch.Tensor, a: float, b: float, c: float) -> torch.Tensor:
    """a x² + b x + c."""
    return (a * x + b) * x + c


def polynomial_pair():
    """(operator, operator of its slopes, list with an entry for each call of the second)."""
    namespace = f"exercise_register_{next(numbers)}"
    calls = []

    def slopes(dy: torch.Tensor, x: torch.Tensor, a: float, b: float) -> torch.Tensor:
        calls.append(len(calls))
        return dy * (2 * a * x + b)

    made = []
    for name, function in (("polynomial", values), ("polynomial_backward", slopes)):
        operator = torch.library.custom_op(f"{namespace}::{name}", function, mutates_args=())
        operator.register_fake(lambda first, *others: torch.empty_like(first))
        made.append(operator)
    return *made, calls


def judge_register(answer, rng):
    operator, slopes, calls = polynomial_pair()
    answer(operator, slopes)
    x = torch.tensor(rng.normal(size=(3, 4)), requires_grad=True)
    factors = rng.uniform(0.5, 2, (2, 3)).tolist()
    return (
        no_gradient(operator, x, factors, rng)
        or never_called(calls)
        or more_kept(operator, x, factors[0])
        or change_unnoticed(operator, x, factors[0])
        or no_second_gradient(operator, x, factors, rng)
        or not_a_citizen(operator, x, factors[0])
    )


def no_gradient(operator, x, factors, rng):
    """A Finding unless both calls, one after the other, have the right gradient."""
    results = [operator(x, *each) for each in factors]
    for y, (a, b, _) in zip(results, factors, strict=True):
        dy = torch.tensor(rng.normal(size=y.shape))
        try:
            (dx,) = torch.autograd.grad(y, x, dy)
        except Exception as error:
            return Finding("crashed", why_no_gradient(error))
        if not torch.allclose(dx, dy * (2 * a * x.detach() + b)):
            return Finding("wrong_value", f"dx is wrong.{instead_of_dx(dx, dy, x, y, a, b)}")
    return None


def why_no_gradient(error):
    """What PyTorch says of a backward pass that stopped, in a line."""
    text = str(error).strip() or type(error).__name__
    if "no autograd formula" in text or "does not require grad" in text:
        return "The operator has no gradient: `operator.register_autograd(...)` gives it one."
    if "structure" in text or "number of gradients" in text:
        return "Backward returns a gradient for each input of the operator: x, a, b and c."
    return f"The backward pass stops: {text.splitlines()[0][:160]}"


def instead_of_dx(dx, dy, x, y, a, b):
    """The mistake that gives this dx, in words; "" where it is no known one."""
    x, y = x.detach(), y.detach()
    known = {
        "This is dy itself: the slope is missing.": dy,
        "It is computed from y. The slope needs x.": dy * (2 * a * y + b),
        "dy and x are exchanged.": x * (2 * a * dy + b),
        "a and b are exchanged.": dy * (2 * b * x + a),
        "dy is missing: this is the slope alone.": 2 * a * x + b,
        "dy is in it twice: `slopes` multiplies by dy itself.": dy * dy * (2 * a * x + b),
    }
    for says, other in known.items():
        if torch.allclose(dx, other):
            return f" {says}"
    return " Are a and b those of this call?"


def never_called(calls):
    if calls:
        return None
    says = "Its gradient is right, but the kernel for it, `slopes`, is never called."
    return Finding("other_means", says)


def more_kept(operator, x, factors):
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        y = operator(x, *factors)
    if sum(tensor.nbytes for tensor in kept) > y.nbytes:
        says = f"It keeps {len(kept)} tensors for y's backward pass, which needs x alone."
        return Finding("wrong_size", says)
    return None


def change_unnoticed(operator, x, factors):
    inner = x * 1
    y = operator(inner, *factors)
    with torch.no_grad():
        inner.mul_(2)
    try:
        torch.autograd.grad(y.sum(), x)
    except RuntimeError:
        return None
    says = "x was changed in place before the backward pass, and PyTorch did not notice: it looks "
    return Finding("wrong_value", says + "after tensors that went through `save_for_backward`.")


def no_second_gradient(operator, x, factors, rng):
    """A Finding unless the gradient has the right gradients itself, with respect to dy and x."""
    results = [operator(x, *each) for each in factors]
    for y, (a, b, _) in zip(results, factors, strict=True):
        dy = torch.tensor(rng.normal(size=y.shape), requires_grad=True)
        ddx = torch.tensor(rng.normal(size=y.shape))
        try:
            (dx,) = torch.autograd.grad(y, x, dy, create_graph=True)
            by_dy, by_x = torch.autograd.grad(dx, (dy, x), ddx)
        except Exception as error:
            return Finding("crashed", why_no_second_gradient(error))
        right = {"dy": (by_dy, ddx * (2 * a * x + b)), "x": (by_x, 2 * a * ddx * dy)}
        for name, (got, exact) in right.items():
            if not torch.allclose(got, exact):
                says = (
                    f"y's gradient is right. `slopes` has a wrong gradient with respect to {name}."
                )
                return Finding("wrong_value", says)
    return None


def why_no_second_gradient(error):
    """What PyTorch says of a backward pass of `slopes` that stopped, in a line."""
    text = str(error).strip() or type(error).__name__
    if "no autograd formula" in text or "does not require grad" in text:
        return (
            "y's gradient is right. Nobody can differentiate it once more: `slopes` has no gradient"
            " of its own yet."
        )
    if "structure" in text or "number of gradients" in text:
        return "The backward pass of `slopes` returns four gradients: for dy, x, a and b."
    return f"The backward pass of `slopes` stops: {text.splitlines()[0][:160]}"


def not_a_citizen(operator, x, factors):
    """A Finding unless PyTorch's own tests of autograd and of the compiler pass."""
    tests = ("test_autograd_registration", "test_aot_dispatch_dynamic")
    try:
        torch.library.opcheck(operator._opoverload, (x, *factors), test_utils=tests)
    except Exception as error:
        first = str(error).strip().splitlines()[0]
        return Finding("crashed", f"Eager it works; traced by the compiler it does not: {first}")
    return None


# ---- contract: a wrapper to repair


def as_it_lies(y, x, a, b, c) -> None:
    """A kernel that knows no strides: it reads x's memory from its first number on, and writes
    y's. Like one on a GPU it takes any bits for floats, and no grid of 0 blocks.
    """
    count = y.numel()
    if not count:
        raise RuntimeError("CUDA error: invalid configuration argument (a grid of 0 blocks)")
    bits = x if x.is_floating_point() else x.to(torch.int32).view(torch.float32)
    room = bits.untyped_storage().nbytes() // bits.itemsize - bits.storage_offset()
    numbers = torch.full((count,), torch.nan, dtype=torch.float64)
    read = min(count, room)
    numbers[:read] = bits.detach().as_strided((read,), (1,)).double()
    result = (a * numbers + b) * numbers + c
    y.as_strided((count,), (1,)).copy_(result)


def tensors_as_they_come(rng):
    """(what it is, tensor) of all that a wrapper must take."""
    x = torch.tensor(rng.normal(size=(6, 4, 5)), dtype=torch.float32)
    image = torch.tensor(rng.normal(size=(2, 3, 4, 5))).to(memory_format=torch.channels_last)
    return (
        ("an ordinary tensor", x),
        ("a transposed tensor, x.mT", x.mT),
        ("every second row, x[:, ::2]", x[:, ::2]),
        ("a row that stands for many, x[:1].expand(3, 4, 5)", x[:1].expand(3, 4, 5)),
        ("x.permute(2, 0, 1)", x.permute(2, 0, 1)),
        ("a tensor that is transposed and cut, x[0].t()[:, ::2]", x[0].t()[:, ::2]),
        ("x.permute(2, 0, 1)[::2]", x.permute(2, 0, 1)[::2]),
        ("a tensor in channels_last", image),
        ("float16", x.half()),
        ("bfloat16, transposed", x.bfloat16().mT),
        ("float64", x.double()),
        ("a single number, of no axis", torch.tensor(2.0)),
        ("an empty tensor, of shape (3, 0, 2)", torch.zeros(3, 0, 2)),
    )


def judge_contract(answer, rng):
    a, b, c = rng.uniform(0.5, 2, 3).tolist()
    for what, x in tensors_as_they_come(rng):
        finding = breaks_with(answer, what, x, (a, b, c))
        if finding:
            return finding
    return takes_integers(answer, (a, b, c))


def breaks_with(answer, what, x, factors):
    """A Finding if the wrapper does not do with this tensor what PyTorch's users expect."""
    read = []

    def launch(y, x, a, b, c):
        read.append(x.data_ptr())
        as_it_lies(y, x, a, b, c)

    before = x.clone()
    try:
        y = answer(launch, x, *factors)
    except (TypeError, ValueError, NotImplementedError, AssertionError):
        if x.dtype == torch.float32:
            raise
        says = "float64, float16 and bfloat16 are floats, too: `launch` takes them."
        return Finding("wrong_dtype", f"It refuses {x.dtype}. {says}")
    except RuntimeError as error:
        if "grid of 0 blocks" not in str(error):
            raise
        return Finding("crashed", f"With {what} it launches a grid of 0 blocks, which is an error.")
    if not isinstance(y, torch.Tensor):
        return Finding("no_return", "Is there a `return y`?")
    return not_as_before(what, x, before) or unlike(what, x, y, read, factors)


def not_as_before(what, x, before):
    if torch.equal(x, before):
        return None
    return Finding("modifies_input", f"With {what}, x is different after the call.")


def unlike(what, x, y, read, factors):
    """A Finding if y is not what it should be: its type, shape, values, place in memory."""
    if y.dtype != x.dtype:
        return Finding("wrong_dtype", f"x is {x.dtype}, and y comes as {y.dtype}.")
    if y.shape != x.shape:
        return Finding("wrong_shape", f"With {what}, y has the shape {list(y.shape)}.")
    exact = values(x.double(), *factors).to(x.dtype)
    if not torch.allclose(y, exact, rtol=1e-2 if x.itemsize == 2 else 1e-5):
        says = f"Wrong with {what}: the kernel reads memory as it lies, whatever the strides say."
        if y.numel() and read and read[-1] != x.data_ptr():
            says = (
                f"Wrong with {what}: the copy of x has its numbers in another order than y's"
                f" memory. y has the strides {y.stride()}. Which has the copy?"
            )
        return Finding("wrong_value", says)
    if memory_of(y) == memory_of(x):
        says = f"With {what} it returns x itself. What an operator returns must be a new tensor."
        return Finding("other_means", says)
    usual = torch.empty_like(x)
    if y.stride() != usual.stride():
        says = f"With {what}, y has the strides {y.stride()}; PyTorch's own operators would give "
        return Finding("other_means", f"{says}{usual.stride()}. What follows pays for copies.")
    if read and x.stride() == usual.stride() and read[-1] != x.data_ptr():
        says = f"With {what}, x is copied first. Its numbers lie as the kernel wants them already."
        return Finding("too_much_traffic", says)
    return None


def takes_integers(answer, factors):
    """A Finding unless integers are refused, by a TypeError that names what is taken."""
    launched = []

    def launch(y, x, a, b, c):
        launched.append(x.dtype)
        as_it_lies(y, x, a, b, c)

    try:
        answer(launch, torch.arange(6, dtype=torch.int32), *factors)
    except AssertionError:
        says = (
            "An `assert` refuses integers, and `python -O` drops every assert: raise a TypeError."
        )
        return Finding("wrong_dtype", says)
    except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
        if not isinstance(error, TypeError):
            kind = type(error).__name__
            says = f"It refuses integers by a {kind}. What a caller catches is a TypeError."
            return Finding("wrong_dtype", says)
        if "float" in str(error):
            return None
        says = "With integers it stops, and its message does not say that it takes floats."
        return Finding("wrong_dtype", says)
    says = "It takes integers: their bits are read as floats, and nobody is told."
    if launched and launched[0].is_floating_point:
        says = "It takes integers and turns them into floats. The contract says to refuse them."
    return Finding("wrong_dtype", says)
