"""The map of tools: every entry is complete, dated and sourced, and the chapter shows all of it."""

import copy
import json
import re
from datetime import date

import nbformat
import pytest

from course.pictures import ecosystem
from utils.files import ROOT

NOTEBOOK = ROOT / "chapters" / "01_ecosystem.ipynb"
DATA = ecosystem.ecosystem()

# What the chapter promises to place on the map.
PROMISED = {
    "easy": {"fastai", "Weights & Biases"},
    "framework": {"PyTorch", "TensorFlow", "Keras", "JAX", "MLX", "Lightning"},
    "serving": {
        "vLLM",
        "TensorRT",
        "Triton Inference Server",
        "TorchScript",
        "ONNX",
        "ONNX Runtime",
        "Detectron2",
    },
    "edge": {"Core ML", "ExecuTorch", "LiteRT"},
    "compiler": {"torch.compile", "XLA", "LLVM", "MLIR", "NVCC", "Triton"},
    "library": {"cuBLAS", "cuDNN", "CUTLASS"},
    "kernel": {"CUDA", "ROCm", "OpenCL", "SYCL", "Metal", "WebGPU"},
    "cloud": {"AWS", "Google Cloud", "Azure", "Lambda", "Vast.ai"},
}
TEXTS = ("name", "what", "who", "status", "kernel", "as_of")
CHANGED = {"renamed", "moved", "changed"}  # of these the map says what they were


def problems(data):
    """What is wrong with the map, as a list of sentences."""
    found = []
    names = [tool["name"] for tool in data["tools"]]
    found += [f"{name} is there twice" for name in set(names) if names.count(name) > 1]
    layers = [layer["id"] for layer in data["layers"]]
    for tool in data["tools"]:
        name = tool.get("name", "?")
        found += [f"{name}: no {key}" for key in TEXTS if not str(tool.get(key, "")).strip()]
        if tool.get("layer") not in layers:
            found.append(f"{name}: layer {tool.get('layer')!r} does not exist")
        if tool.get("status") not in data["status"]:
            found.append(f"{name}: status {tool.get('status')!r} is not explained")
        if tool.get("status") in CHANGED and not tool.get("was"):
            found.append(f"{name}: {tool['status']}, but not from what")
        if len(re.findall(r"[.!?](?= |$)", tool.get("what", ""))) != 1:
            found.append(f"{name}: what it is should be one sentence")
        try:
            looked_up = date.fromisoformat(tool.get("as_of", ""))
        except ValueError:
            found.append(f"{name}: as_of is no date")
        else:
            if not date(2026, 11, 1) <= looked_up <= date.today():
                found.append(f"{name}: looked up on {looked_up}, which cannot be")
        if not tool.get("sources"):
            found.append(f"{name}: no source")
        for source in tool.get("sources", ()):
            if not source.get("url", "").startswith("https://"):
                found.append(f"{name}: a source without an address")
            found += [
                f"{name}: a source without its {key}"
                for key in ("title", "says")
                if not source.get(key)
            ]
    for layer, promised in PROMISED.items():
        there = {tool["name"] for tool in data["tools"] if tool.get("layer") == layer}
        found += [f"{name} is missing from {layer}" for name in sorted(promised - there)]
    return found


def test_the_map_is_complete_and_sourced():
    assert problems(DATA) == []


def test_layers_go_from_framework_to_silicon():
    ids = [layer["id"] for layer in DATA["layers"]]
    assert (
        ids.index("framework")
        < ids.index("compiler")
        < ids.index("library")
        < ids.index("kernel")
        < ids.index("cloud")
    )
    assert set(ecosystem.YOURS) < set(ids)


DEFECTS = {
    "no source": lambda data: data["tools"][0].update(sources=[]),
    "without an address": lambda data: data["tools"][0]["sources"][0].update(url="somewhere"),
    "without its says": lambda data: data["tools"][0]["sources"][0].update(says=""),
    "is not explained": lambda data: data["tools"][3].update(status="dead"),
    "but not from what": lambda data: next(
        t for t in data["tools"] if t["status"] == "renamed"
    ).pop("was"),
    "does not exist": lambda data: data["tools"][3].update(layer="attic"),
    "is there twice": lambda data: data["tools"].append(copy.deepcopy(data["tools"][0])),
    "one sentence": lambda data: data["tools"][0].update(what="A library. It is fast."),
    "is no date": lambda data: data["tools"][0].update(as_of="today"),
    "which cannot be": lambda data: data["tools"][0].update(as_of="2024-06-01"),
    "no kernel": lambda data: data["tools"][0].update(kernel=" "),
    "LiteRT is missing": lambda data: data["tools"].remove(
        next(t for t in data["tools"] if t["name"] == "LiteRT")
    ),
}


@pytest.mark.parametrize("said", DEFECTS)
def test_a_defect_is_found(said):
    data = copy.deepcopy(DATA)
    DEFECTS[said](data)
    assert any(said in problem for problem in problems(data)), problems(data)


def test_the_interactive_map_shows_every_entry_with_its_sources():
    from html import unescape

    page = unescape(ecosystem.stack_map()._repr_html_())
    assert "flex" not in page  # JupyterLab drops it where it does not trust the notebook
    for tool in DATA["tools"]:
        shown = [
            tool[key]
            for key in ("name", "what", "who", "was", "note", "kernel", "as_of")
            if key in tool
        ]
        shown += [source[key] for source in tool["sources"] for key in ("title", "url", "says")]
        assert [text for text in shown if text not in page] == [], tool["name"]
    assert "<script" not in page


def test_text_in_the_map_is_escaped():
    tool = {
        **DATA["tools"][0],
        "name": "<b>&",
        "sources": [{"title": "t", "url": "https://x/?a='b'", "says": "<i>"}],
    }
    page = ecosystem.StackMap({**DATA, "tools": [tool]})._repr_html_()
    assert "&lt;b&gt;&amp;" in page and "<i>)" not in page and "='b'" not in page


def test_the_still_picture_names_every_tool():
    alt = ecosystem.stack().alt
    assert [tool["name"] for tool in DATA["tools"] if tool["name"] not in alt] == []


def test_the_chapter_shows_all_of_it():
    cells = nbformat.read(NOTEBOOK, 4).cells
    outputs = "".join(
        json.dumps(output, ensure_ascii=False)
        for cell in cells
        if cell.cell_type == "code"
        for output in cell.outputs
    )
    outputs = outputs.replace("&amp;", "&").replace("&#x27;", "'")
    for tool in DATA["tools"]:
        assert tool["name"] in outputs and tool["what"] in outputs, tool["name"]
        assert [
            s["url"] for s in tool["sources"] if s["url"].replace("&amp;", "&") not in outputs
        ] == [], tool["name"]


def test_what_is_handed_over_is_counted_per_element():
    fig = ecosystem.handed_over(
        {"eager": [("mul", 400, 400), ("relu", 400, 400)], "Python": []}, elements=100
    )
    assert "eager: 2 kernels, 16 bytes an element" in fig.alt
    assert "Python: nothing" in fig.alt
    widths = [patch.get_width() for patch in fig.axes[0].patches]
    assert sum(widths) == pytest.approx(
        2 * 16
    )  # each kernel: read, written, and a frame around both


TRITON = """
async_compile = AsyncCompile()
triton_poi_fused_add_mul_relu_0 = async_compile.triton('triton_poi_fused_add_mul_relu_0', '''
@triton_heuristics.pointwise(inductor_meta={'kernel_name': 'triton_poi_fused_add_mul_relu_0'})
@triton.jit
def triton_poi_fused_add_mul_relu_0(in_ptr0, in_ptr1, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    tmp0 = tl.load(in_ptr0 + (x0), None)
    tmp3 = tl.load(in_ptr1 + (x0), None)
    tmp4 = tmp0 + tmp3
    tl.store(out_ptr0 + (x0), tmp4, None)
''', device_str='cuda')

def call(args):
    with torch.cuda._DeviceGuard(0):
        triton_poi_fused_add_mul_relu_0.run(arg0_1, arg1_1, buf0, 33554432, stream=stream0)
    return (buf0, )
"""


def test_kernel_and_launches_are_found_in_code_for_a_gpu():
    lines, launches = ecosystem.written_kernel([TRITON])
    assert (
        lines[0] == "tmp0 = tl.load(in_ptr0 + (x0), None)"
        and lines[-1].startswith("tl.store")
        and len(lines) == 4
    )
    assert launches == [
        "triton_poi_fused_add_mul_relu_0.run(arg0_1, arg1_1, buf0, 33554432, stream=stream0)"
    ]


def test_the_chapter_shows_the_kernel_and_its_one_launch():
    cell = next(cell for cell in nbformat.read(NOTEBOOK, 4).cells if cell.id == "compile-code")
    shown = cell.outputs[0].text
    assert "tmp0" in shown and "store" in shown and "launched: 1\n" in shown
