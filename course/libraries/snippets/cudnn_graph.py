"""cuDNN's graph API: a convolution, a bias and a ReLU as one graph."""

import cudnn
import torch


def channels_last(*shape):
    made = torch.randn(*shape, device="cuda", dtype=torch.float16)
    return made.to(memory_format=torch.channels_last)


x, w, y = channels_last(8, 64, 28, 28), channels_last(32, 64, 3, 3), channels_last(8, 32, 28, 28)
bias = channels_last(1, 32, 1, 1)

handle = cudnn.create_handle()
cudnn.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)
graph = cudnn.pygraph(
    handle=handle,
    io_data_type=cudnn.data_type.HALF,
    intermediate_data_type=cudnn.data_type.FLOAT,
    compute_data_type=cudnn.data_type.FLOAT,
)
image, filters, shift = (graph.tensor_like(each) for each in (x, w, bias))
sums = graph.conv_fprop(image=image, weight=filters, padding=[1, 1], stride=[1, 1], dilation=[1, 1])
shifted = graph.bias(name="bias", input=sums, bias=shift)
result = graph.relu(name="relu", input=shifted)
result.set_output(True).set_data_type(cudnn.data_type.HALF)

graph.validate()
graph.build_operation_graph()
graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
graph.check_support()
graph.build_plans()
plans = range(graph.get_execution_plan_count())
notes = [str(graph.get_behavior_notes_for_plan_at_index(plan)) for plan in plans]
late = sum("RUNTIME_COMPILATION" in of_plan for of_plan in notes)
print(f"the heuristics propose {len(plans)} plans, {late} of them compiled at run time")

workspace = torch.empty(graph.get_workspace_size(), device="cuda", dtype=torch.uint8)
graph.execute({image: x, filters: w, shift: bias, result: y}, workspace, handle=handle)

exact = torch.nn.functional.conv2d(x.double(), w.double(), bias.double().flatten(), padding=1)
torch.testing.assert_close(y.double(), exact.relu(), rtol=2e-3, atol=2e-2)
print("convolution + bias + ReLU, one kernel: right")
