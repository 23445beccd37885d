"""The exercises of the chapter PyTorch extensions."""

from course.checking.quiz import Quiz, one_of
from course.extensions.judging import Lazy, TorchExercise

torch = Lazy("torch")
trials = Lazy("course.extensions.trials")


# ---- saved: what the backward pass needs


def keep(ctx, inputs, output):
    x, scale = inputs
    ctx.scale = scale
    ctx.save_for_backward(output)


SAVED = TorchExercise(
    id="pytorch_extensions.saved",
    title="What must be kept?",
    minutes=4,
    task=(
        "y = scale · tanh(x) has the slope scale - y²/scale. Its backward pass is written:"
        " `(kept,) = ctx.saved_tensors; return dy * (ctx.scale - kept * kept / ctx.scale), None`."
        " Write its `setup_context`. Keep the one tensor that is needed and nothing more, in a way"
        " that lets PyTorch notice if somebody changes it in place. `scale` is a number, positive"
        " or negative."
    ),
    starter="""
def keep(ctx, inputs, output):
    x, scale = inputs
""",
    solution=keep,
    judge=lambda answer, rng: trials.judge_saved(answer, rng),
    tried="Gradient and gradient's gradient agree with tanh's; nothing is kept for too long.",
    hints=(
        "The formula of the slope is scale - y²/scale. The backward pass writes `kept * kept` where"
        " the formula has y². Which tensor is `kept`?",
        "The third parameter, `output`, is what forward returned.",
        "Tensors go through `ctx.save_for_backward(...)`, numbers may be attributes of ctx.",
    ),
    wrong=(
        ("save_for_backward(output)", "save_for_backward(x)", "wrong_value"),
        (
            "save_for_backward(output)",
            "save_for_backward(output.detach().clone())",
            "wrong_value",
        ),
        (
            "save_for_backward(output)",
            "save_for_backward(output, x)",
            "crashed",
        ),
        (
            "(output)",
            "(output.double().to(output.dtype))",
            "wrong_value",
        ),
        ("ctx.scale = scale", "ctx.scale = 1.0", "wrong_value"),
        ("ctx.scale = scale", "ctx.scale = abs(scale)", "wrong_value"),
        ("save_for_backward(output)", "saved = output", "crashed"),
        ("ctx.scale = scale", "ctx.scale, ctx.y = scale, output", "leak"),
        ("ctx.scale = scale", "ctx.scale, ctx.x = scale, x", "wrong_size"),
        ("ctx.scale = scale", "ctx.scale, ctx.x = scale, x.detach()", "wrong_size"),
        ("ctx.scale = scale", "ctx.scale, ctx.x = scale, x.clone()", "wrong_size"),
        ("ctx.scale = scale", "ctx.scale, ctx.x = scale, x.tolist()", "wrong_size"),
        (
            "ctx.scale = scale",
            "ctx.scale, ctx.x = scale, x.detach().numpy().astype('int8')",
            "wrong_size",
        ),
        (
            "ctx.scale = scale",
            "ctx.scale, ctx.x = scale, x.untyped_storage().clone()",
            "wrong_size",
        ),
        (
            "ctx.scale = scale",
            "ctx.scale, ctx.more = scale, torch.zeros(1 << 16)",
            "wrong_size",
        ),
        (
            "    ctx.scale = scale\n",
            "    ctx.scale, copy = scale, x.detach().numpy().tobytes()\n"
            "    ctx.again = lambda: copy\n",
            "wrong_size",
        ),
    ),
)


# ---- fake: what comes out, without computing it


def nearest_fake(points, centers):
    index = points.new_empty(points.shape[0], dtype=torch.int64)
    distance = points.new_empty(points.shape[0])
    return index, distance


FAKE = TorchExercise(
    id="pytorch_extensions.fake",
    title="A fake kernel",
    minutes=5,
    task=(
        "`nearest(points, centers)` takes [n, d] and [k, d] and returns, for each of the n points,"
        " the index of its nearest center (int64) and the distance to it (of the points' type),"
        " both new and of shape [n]; centers may have another type. Write its fake kernel. It gets"
        " tensors without data and returns tensors without data, of the right shape, type and"
        " device."
    ),
    starter="""
def nearest_fake(points, centers):
    return torch.empty_like(points), torch.empty_like(points)
""",
    solution=nearest_fake,
    judge=lambda answer, rng: trials.judge_fake(answer, rng),
    tried="Shape, type and device agree with the real operator's, and a tracer took any n.",
    hints=(
        "What are the shape and the type of each of the two results? The task says both.",
        "n may be a symbol: `points.shape[0]` hands it on, `len(points)` makes it a number.",
        "`points.new_empty(shape)` has the type and the device of points.",
        "`points.new_empty(points.shape[0], dtype=torch.int64)` is the first.",
    ),
    wrong=(
        (", dtype=torch.int64", "", "wrong_dtype"),
        ("return index, distance", "return index", "wrong_value"),
        ("    return index, distance", "    pass", "no_return"),
        ("return index, distance", "return distance, index", "wrong_dtype"),
        (
            "distance = points.new_empty",
            "distance = torch.empty",
            "wrong_dtype",
        ),
        (
            "index = points.new_empty(points.shape[0], dtype=torch.int64)",
            "index = torch.empty(points.shape[0], dtype=torch.int64)",
            "wrong_value",
        ),
        (
            "distance = points.new_empty(points.shape[0])",
            "distance = points.new_empty(points.shape[0], centers.shape[0])",
            "wrong_shape",
        ),
        (
            "distance = points.new_empty(points.shape[0])",
            "distance = points.new_empty(int(points.shape[0]))",
            "wrong_shape",
        ),
        (
            "distance = points.new_empty",
            "distance = centers.new_empty",
            "wrong_dtype",
        ),
        (
            "distance = points.new_empty(points.shape[0])",
            "distance = points.new_empty(len(points.tolist()))",
            "crashed",
        ),
        (
            "distance = points.new_empty(points.shape[0])",
            "more = points.new_empty(points.shape[0] - centers.shape[0])\n"
            "    distance = torch.cat([points.new_empty(centers.shape[0]), more])",
            "crashed",
        ),
    ),
)


# ---- broadcast: a gradient has the shape of what it belongs to


def scaled_backward(dy, x, scale):
    dx = (dy * scale).sum_to_size(x.shape)
    dscale = (dy * x).sum_to_size(scale.shape)
    return dx, dscale


BROADCAST = TorchExercise(
    id="pytorch_extensions.broadcast",
    title="The gradient of a broadcast",
    minutes=7,
    task=(
        "y = x · scale, where x, scale or both are broadcast, as in NumPy: [4, 3] and [3], [4, 3]"
        " and [], a tensor of one number, [2, 1, 3] and [5, 1]. Return dx and dscale: dx has the"
        " shape of x, and dscale that of scale."
    ),
    starter="""
def scaled_backward(dy, x, scale):
    return dy * scale, dy * x
""",
    solution=scaled_backward,
    judge=lambda answer, rng: trials.judge_broadcast(answer, rng),
    tried="Both gradients agree with PyTorch's own for twelve pairs of shapes.",
    hints=(
        "A number that was used in several places gets the sum of their gradients (section 3).",
        "Which axes were stretched? Those that x or scale lacks, and those of length 1.",
        "`tensor.sum_to_size(shape)` adds up just these.",
    ),
    wrong=(
        (".sum_to_size(scale.shape)", "", "wrong_shape"),
        (".sum_to_size(x.shape)", "", "wrong_shape"),
        (
            "(dy * x).sum_to_size(scale.shape)",
            "(dy * x).sum(0).expand(scale.shape)",
            "wrong_value",
        ),
        (
            "return dx, dscale",
            "return dx, dscale / max(1, len(dy.ravel()))",
            "wrong_value",
        ),
        ("return dx, dscale", "return dscale, dx", "wrong_value"),
        ("(dy * scale)", "(dy * x)", "wrong_value"),
        (
            "    dx = (dy * scale).sum_to_size(x.shape)\n"
            "    dscale = (dy * x).sum_to_size(scale.shape)\n",
            "    dscale = (dy * x).sum_to_size(scale.shape)\n"
            "    dx = dy.mul_(scale).sum_to_size(x.shape)\n",
            "modifies_input",
        ),
    ),
)


# ---- stream: two streams and a caching allocator


def side_by_side(gpu, x, heavy, light):
    side = gpu.Stream()
    side.wait_stream(gpu.current_stream())
    with gpu.stream(side):
        a = heavy(x)
    b = light(x)
    # x needs no record_stream: who reuses its memory on this stream comes after this wait
    gpu.current_stream().wait_stream(side)
    a.record_stream(gpu.current_stream())
    return a + b


STREAM = TorchExercise(
    id="pytorch_extensions.stream",
    title="Two streams",
    minutes=7,
    task=(
        "`heavy(x)` and `light(x)` launch kernels on the current stream; x was computed there, too."
        " Run heavy on a stream of its own, beside light, and return their sum, computed on the"
        " stream that was current before. `gpu` has torch.cuda's names: `gpu.Stream()`,"
        " `gpu.current_stream()`, `with gpu.stream(s):`, `s.wait_stream(t)`,"
        " `tensor.record_stream(s)`."
    ),
    starter="""
def side_by_side(gpu, x, heavy, light):
    side = gpu.Stream()
    with gpu.stream(side):
        a = heavy(x)
    b = light(x)
    return a + b
""",
    solution=side_by_side,
    judge=lambda answer, rng: trials.judge_stream(answer, rng),
    tried=(
        "Nine orders of the streams, each on the default stream and on another, with neighbours"
        " who take all memory that is free: always right."
    ),
    hints=(
        "Three things can go wrong: heavy begins before x is there; the sum begins before heavy is"
        " done; the memory of `a` is handed out again while the sum still reads it.",
        "`side.wait_stream(gpu.current_stream())` before heavy; the reverse before the sum.",
        "`a` was allocated on `side`. `a.record_stream(...)` tells the allocator who reads it too.",
    ),
    wrong=(
        ("return a + b", "a + b", "no_return"),
        ("    side.wait_stream(gpu.current_stream())\n", "", "race"),
        ("    gpu.current_stream().wait_stream(side)\n", "", "race"),
        ("    a.record_stream(gpu.current_stream())\n", "", "race"),
        ("    with gpu.stream(side):\n        a =", "    a =", "other_means"),
        ("a.record_stream", "x.record_stream", "race"),
        (
            ("    gpu.current_stream().wait_stream(side)\n", ""),
            (
                "    b = light(x)",
                "    gpu.current_stream().wait_stream(side)\n    b = light(x)",
            ),
            "other_means",
        ),
        (
            ("    b = light(x)\n", ""),
            ("    side.wait", "    b = light(x)\n    side.wait"),
            "other_means",
        ),
        (
            (
                "side.wait_stream(gpu.current_stream())",
                "side.wait_stream(gpu.default_stream())",
            ),
            ("gpu.current_stream().wait_stream", "gpu.default_stream().wait_stream"),
            ("record_stream(gpu.current_stream())", "record_stream(gpu.default_stream())"),
            "race",
        ),
        (
            "a = heavy(x)\n    b = light(x)",
            "a = heavy(x)\n        b = light(x)",
            "other_means",
        ),
        (
            ("a = heavy(x)", "a = light(x)"),
            ("b = light(x)", "b = heavy(x)"),
            "other_means",
        ),
    ),
)


# ---- in place: say what you change

SCHEMA = "(Tensor(a!) values, Tensor(b!) momentum, Tensor grads, float rate) -> ()"


def announce(name, update):
    return torch.library.custom_op(name, update, mutates_args=("values", "momentum"))


IN_PLACE = TorchExercise(
    id="pytorch_extensions.in_place",
    title="Say what you change",
    minutes=4,
    task=(
        "`update(values, momentum, grads, rate)` takes a step of gradient descent: it changes"
        " `values` and `momentum` in place and returns nothing. Make it an operator of this name"
        " that compilers may rely on, and return it."
    ),
    starter="""
def announce(name, update): ...
""",
    solution=announce,
    judge=lambda answer, rng: trials.judge_in_place(answer, rng),
    tried=(
        "The schema names what changes and nothing else; at two rates it does what `update` does,"
        " compiled as well."
    ),
    hints=(
        "Which of its arguments has other values after the call?",
        "`mutates_args` takes their names, as strings, in a tuple.",
    ),
    wrong=(
        ('("values", "momentum")', "()", "unannounced"),
        ('("values", "momentum")', '("values",)', "unannounced"),
        ('("values", "momentum")', '("momentum",)', "unannounced"),
        (
            '("values", "momentum")',
            '("values", "momentum", "grads")',
            "other_means",
        ),
        ('("values", "momentum")', '"unknown"', "other_means"),
        (
            "update, mutates_args=",
            f"lambda values, momentum, grads, rate: None, schema={SCHEMA!r}, mutates_args=",
            "wrong_value",
        ),
        (
            "update, mutates_args=",
            f"lambda v, m, g, rate: update(v, m, g, 0.1), schema={SCHEMA!r}, mutates_args=",
            "wrong_value",
        ),
        (
            "update, mutates_args=",
            f"lambda v, m, g, r: update(v, m, g.add_(0), r), schema={SCHEMA!r}, mutates_args=",
            "unannounced",
        ),
        (
            "torch.library.custom_op(name, update, mutates_args=",
            "(update, ",
            "not_a_kernel",
        ),
    ),
)


# ---- register: the gradient of an operator


def register(operator, slopes):
    def keep(ctx, inputs, output):
        x, ctx.a, ctx.b, _ = inputs
        ctx.save_for_backward(x)

    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return slopes(dy, x, ctx.a, ctx.b), None, None, None

    def keep_twice(ctx, inputs, output):
        dy, x, ctx.a, ctx.b = inputs
        ctx.save_for_backward(dy, x)

    def backward_twice(ctx, ddx):
        dy, x = ctx.saved_tensors
        by_dy = slopes(ddx, x, ctx.a, ctx.b)
        return by_dy, 2 * ctx.a * ddx * dy, None, None

    operator.register_autograd(backward, setup_context=keep)
    slopes.register_autograd(backward_twice, setup_context=keep_twice)


REGISTER = TorchExercise(
    id="pytorch_extensions.register",
    title="Register both gradients",
    minutes=10,
    task=(
        "`operator(x, a, b, c)` computes y = a x² + b x + c, and the operator"
        " `slopes(dy, x, a, b)` computes dy · (2 a x + b). Give the first its gradient by means of"
        " the second. `operator.register_autograd(backward, setup_context=keep)` takes two"
        " functions like those of `Polynomial`, without the class. Then give `slopes` itself a"
        " gradient, so that dx can be differentiated once more: its backward pass is handed ddx,"
        " the slope of the loss with respect to dx. Keep no tensor that is not needed."
    ),
    starter="""
def register(operator, slopes):
    def keep(ctx, inputs, output): ...

    def backward(ctx, dy):
        return dy, None, None, None

    operator.register_autograd(backward, setup_context=keep)
    # slopes.register_autograd(...)
""",
    solution=register,
    judge=lambda answer, rng: trials.judge_register(answer, rng),
    tried=(
        "Two calls with different numbers have the right gradients, by your kernel, and these have"
        " the right gradients, too. No other tensor is kept, and PyTorch's tests of autograd and of"
        " the compiler's tracing pass."
    ),
    hints=(
        "Section 2 has all of it: `setup_context` of `Polynomial` is `keep` here, and its"
        " `backward` computes with PyTorch what `slopes` computes with a kernel.",
        "`inputs` are the four arguments of the call: `x, ctx.a, ctx.b, _ = inputs`.",
        "`(x,) = ctx.saved_tensors`, and then `slopes(dy, x, ctx.a, ctx.b)` is the gradient of x."
        " The other three inputs have none.",
        "dx = dy · (2 a x + b) depends on dy and on x. What is its slope with respect to each?",
        "With respect to dy it is 2 a x + b, so `slopes(ddx, x, a, b)` is that gradient; with"
        " respect to x it is 2 a · dy, so that gradient is 2 a · ddx · dy. a and b have none.",
    ),
    wrong=(
        ("save_for_backward(x)", "save_for_backward(output)", "wrong_value"),
        ("save_for_backward(x)", "save_for_backward(x, output)", "crashed"),
        (
            ("save_for_backward(x)", "save_for_backward(x, output)"),
            ("(x,) = ctx", "x, _ = ctx"),
            "wrong_size",
        ),
        (
            ("ctx.save_for_backward(x)", "ctx.x = x"),
            ("(x,) = ctx.saved_tensors", "x = ctx.x"),
            "wrong_value",
        ),
        (", None, None, None", "", "crashed"),
        ("slopes(dy, x, ctx.a, ctx.b)", "dy * (2 * ctx.a * x + ctx.b)", "other_means"),
        ("slopes(dy, x, ", "slopes(x, dy, ", "wrong_value"),
        ("x, ctx.a, ctx.b, _ = inputs", "x, ctx.b, ctx.a, _ = inputs", "wrong_value"),
        (
            ("x, ctx.a, ctx.b, _ = inputs", "x, keep.a, keep.b, _ = inputs"),
            ("slopes(dy, x, ctx.a, ctx.b)", "slopes(dy, x, keep.a, keep.b)"),
            "wrong_value",
        ),
        ("    operator.register_autograd(backward, setup_context=keep)\n", "", "crashed"),
        (
            "    slopes.register_autograd(backward_twice, setup_context=keep_twice)\n",
            "",
            "crashed",
        ),
        ("by_dy, 2 * ctx.a", "by_dy, ctx.a", "wrong_value"),
        ("ddx * dy, None", "ddx, None", "wrong_value"),
        ("slopes(ddx, x", "slopes(dy, x", "wrong_value"),
        ("return by_dy, 2 * ctx.a * ddx * dy,", "return by_dy, None,", "crashed"),
        (
            "slopes(dy, x, ctx.a, ctx.b), None",
            "slopes(x * 0 + 1, x, ctx.a, ctx.b), None",
            "wrong_value",
        ),
        (
            "return slopes(dy, x, ctx.a, ctx.b)",
            "return dy * slopes(dy, x, ctx.a, ctx.b)",
            "wrong_value",
        ),
    ),
)


# ---- contract: a wrapper to repair


def forward(launch, x, a, b, c):
    if not x.is_floating_point():
        raise TypeError(f"polynomial takes float tensors, and this is {x.dtype}")
    y = torch.empty_like(x)
    if x.numel():
        same = x if x.stride() == y.stride() else torch.empty_like(y).copy_(x)
        launch(y, same, a, b, c)
    return y


CONTRACT = TorchExercise(
    id="pytorch_extensions.contract",
    title="Repair the contract",
    minutes=9,
    task=(
        "`launch(y, x, a, b, c)` runs a kernel that knows no strides: it reads `y.numel()` numbers"
        " from where x begins and writes as many to where y begins, one after the other. This"
        " wrapper gives right values for most tensors, and still breaks three points of the"
        " contract: it loses the memory format (channels_last), it launches a grid of 0 blocks for"
        " an empty tensor, and it accepts integers without complaint. Repair it. Copy x only where"
        " its strides are not those of y, and refuse integers by a `TypeError` that names `float`."
    ),
    starter="""
def forward(launch, x, a, b, c):
    x = x.contiguous()
    y = torch.empty_like(x)
    launch(y, x, a, b, c)
    return y
""",
    solution=forward,
    judge=lambda answer, rng: trials.judge_contract(answer, rng),
    tried=(
        "Transposed, strided, expanded, channels_last, 16-bit, empty, a single number: all as"
        " PyTorch's own operators have them, and integers are refused."
    ),
    hints=(
        "`torch.empty_like(x)` keeps x's memory format, if x is still the one that was handed in:"
        " make y first.",
        "The kernel needs x's numbers in the order of y's memory. `torch.empty_like(y).copy_(x)`"
        " has them in that order. Is it needed if `x.stride() == y.stride()`?",
        "Guard the launch by `if x.numel():`, and begin with"
        " `if not x.is_floating_point(): raise TypeError(...)`.",
    ),
    wrong=(
        ("x if x.stride() == y.stride() else torch.empty_like(y).copy_(x)", "x", "wrong_value"),
        (
            "x if x.stride() == y.stride() else torch.empty_like(y).copy_(x)",
            "x.contiguous()",
            "wrong_value",
        ),
        (
            "same = x if x.stride() == y.stride() else torch.empty_like(y).copy_(x)",
            "same = x if x.stride() == y.stride() else x.contiguous()",
            "wrong_value",
        ),
        (
            "    if x.numel():\n",
            "    if not x.numel():\n        return x\n    if x.numel():\n",
            "other_means",
        ),
        (
            "    if not x.is_floating_point():\n"
            '        raise TypeError(f"polynomial takes float tensors, and this is {x.dtype}")\n',
            '    assert x.is_floating_point(), "float"\n',
            "wrong_dtype",
        ),
        (
            "    if not x.is_floating_point():\n"
            '        raise TypeError(f"polynomial takes float tensors, and this is {x.dtype}")\n',
            "    x = x if x.is_floating_point() else x.float()\n",
            "wrong_dtype",
        ),
        ("    y = torch", "    x = x.contiguous()\n    y = torch", "other_means"),
        (
            "torch.empty_like(x)",
            "torch.empty_like(x, memory_format=torch.contiguous_format)",
            "other_means",
        ),
        ("x if x.stride() == y.stride() else ", "", "too_much_traffic"),
        ("if x.numel():", "if True:", "crashed"),
        ("    if x.numel():\n", "    if x.ndim and x.numel():\n", "wrong_value"),
        ("if not x.is_floating_point():", "if x.is_complex():", "wrong_dtype"),
        ("takes float tensors, and this is {x.dtype}", "cannot do that", "wrong_dtype"),
        ("return y", "return y.float()", "wrong_dtype"),
        (
            "launch(y, same, a, b, c)",
            "launch(x, same, a, b, c)\n        return x",
            "modifies_input",
        ),
        ("    return y", "    pass", "no_return"),
    ),
)


EXERCISES = (SAVED, BROADCAST, IN_PLACE, REGISTER, FAKE, CONTRACT, STREAM)

QUIZZES = (
    Quiz(
        id="pytorch_extensions.q_product",
        question=("z = w · x with w = 3 and x = 5, and z.grad is 2. What is w.grad?"),
        answer=10,
        explain_right="x · z.grad = 5 · 2: the larger the input, the more w matters.",
        explain={
            6: "That is x.grad: w · z.grad.",
            5: "That is how fast z grows with w. It is multiplied by z.grad, which is 2.",
            30: "Neither w nor the value of z is needed: w.grad = x · z.grad.",
            2: "That is z.grad. A unit more of w changes z by x.",
            None: "The rule is w.grad = x · z.grad.",
        },
    ),
    one_of(
        "pytorch_extensions.q_route",
        (
            "Your users have no compiler, and each calls your operator 10,000 times per second."
            " Which of these routes serves them?"
        ),
        ("load_inline", "It compiles C++ on the user's machine, by the user's compiler."),
        (
            "custom_op over NVRTC",
            "By the table the host is busy with one call for as long as there is until the next.",
        ),
        (
            "A package, built beforehand",
            "It was compiled once, by you, and a call goes through C++: the host has time left.",
        ),
        ("Numba", "By the table a call takes longer than there is time until the next."),
        answer="c",
    ),
    one_of(
        "pytorch_extensions.q_abi",
        "What does a library built with PyTorch's stable interface save you?",
        (
            "Compiling for each GPU architecture",
            "Kernels are still machine code of an architecture, or PTX for later ones.",
        ),
        (
            "Compiling again for each version of PyTorch",
            (
                "It calls C functions whose names and types stay, so one library serves all "
                "versions"
                " from the one it was built for."
            ),
        ),
        (
            "Writing a backward pass",
            "Autograd asks for the same rules whichever way the kernel came in.",
        ),
        answer="b",
    ),
    one_of(
        "pytorch_extensions.q_stream",
        (
            "A kernel is launched on the legacy default stream, whatever stream is current. When"
            " does it hurt?"
        ),
        (
            "Never: the default stream waits for all others",
            "It waits for blocking streams only; PyTorch makes non-blocking ones.",
        ),
        (
            "When others use streams that do not wait for it, and in every CUDA graph capture",
            (
                "Tests on one stream never see it. PyTorch's own side streams do not wait for the"
                " default stream, and a capture fails at once."
            ),
        ),
        ("Only with more than one GPU", "One GPU with two streams is enough."),
        answer="b",
    ),
    one_of(
        "pytorch_extensions.q_seed",
        "Why is the seed an input of the operator, and not drawn inside it?",
        ("Drawing it inside would take too long", "It is one number for the whole matrix."),
        (
            "So that both passes draw the same mask, and the same call gives the same result",
            (
                "With the same seed it is a function like any other: gradcheck can "
                "differentiate it,"
                " and a CUDA graph draws a new mask at each replay, from a seed drawn outside."
            ),
        ),
        ("PyTorch allows no random numbers in an operator", "Its own dropout has some."),
        answer="b",
    ),
)
