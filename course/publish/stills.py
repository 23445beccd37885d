"""Stills of widgets: sliders, quizzes and pictures as saved in a notebook, as plain HTML.

A deck or a web page has no kernel to answer a slider, and the scripts that draw ipywidgets come
from the network. So each widget is replaced by a picture of itself: HTML form fields that are
switched off.
"""

import copy
import html
import re

STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
WRITTEN = re.compile(r"(Writing|Overwriting|Appending to) \S+\n")  # what %%writefile says
NOTE = "To use this, open the chapter in JupyterLab."


def stills(notebook):
    """A copy of the notebook with HTML for every widget and every described picture.

    A widget that brought a picture or HTML of its own keeps that. What `%%writefile` says, which
    its first line says already, is left out. Raises KeyError for a widget whose state was not
    saved.
    """
    notebook = copy.deepcopy(notebook)
    models = notebook.metadata.pop("widgets", {}).get(STATE, {}).get("state", {})
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        with_answer(cell)
        if outputs and WRITTEN.fullmatch(outputs[0].get("text", "")):
            cell.outputs = outputs[1:]
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            view = data.pop(VIEW, None)
            if "image/png" in data:
                data.setdefault("text/html", picture(output))
                del data["image/png"]
            elif view is not None and "text/html" not in data:
                data["text/html"] = still(view["model_id"], models)
    return notebook


def with_answer(cell):
    """Let a question's form know its answer, where the cell's metadata say it, in place."""
    answer = cell.metadata.get("answer")
    for output in cell.get("outputs", []) if answer else []:
        page = output.get("data", {}).get("text/html", "")
        told = f'<form class="predict" data-answer="{html.escape(answer)}">'
        output["data"]["text/html"] = page.replace('<form class="predict">', told)


def still(reference, models):
    """HTML for one widget and what is in it. The arguments are those of `widget`."""
    return f'<div class="still" title="{NOTE}">{widget(reference, models)}</div>'


def words_of(reference, models):
    """What the pictures and texts in a widget's outputs say, as plain text."""
    model = models[reference.removeprefix("IPY_MODEL_")]
    inner = [words_of(child, models) for child in model["state"].get("children", ())]
    said = [
        output.get("text") or output.get("data", {}).get("text/plain", "")
        for output in model["state"].get("outputs", ())
    ]
    return "\n".join(each.strip() for each in [*inner, *said] if each.strip())


def picture(output):
    """An output's PNG as an <img> element, with the description that the picture carries."""
    alt = output.get("metadata", {}).get("image/png", {}).get("alt", "")
    return (
        f'<img alt="{html.escape(alt)}" '
        f'src="data:image/png;base64,{"".join(output["data"]["image/png"].split())}">'
    )


def widget(reference, models):
    """HTML for one widget.

    reference: its id, or "IPY_MODEL_" and its id; models: the notebook's saved widget state.
    """
    model = models[reference.removeprefix("IPY_MODEL_")]
    draw = DRAW.get(model["model_name"])
    if draw is None:
        raise ValueError(
            f"{model['model_name']}: course/publish/stills.py does not know how to draw it"
        )
    return draw(model, models)


def box(model, models):
    kind = "row" if model["model_name"] == "HBoxModel" else "column"
    inner = "".join(widget(child, models) for child in model["state"]["children"])
    return f'<div class="still-{kind}">{inner}</div>'


def labelled(state, inside):
    words = ""
    if state.get("description"):
        words = f'<span class="still-label">{html.escape(state["description"])}</span>'
    return f'<label class="still-field">{words}{inside}</label>'


def slider(model, models):
    state = model["state"]
    limits = " ".join(f'{name}="{state[name]}"' for name in ("min", "max", "step", "value"))
    return labelled(state, f'<input type="range" disabled {limits}><span>{state["value"]}</span>')


def progress(model, models):
    state = model["state"]
    return labelled(state, f'<progress max="{state["max"]}" value="{state["value"]}"></progress>')


def number(model, models):
    return labelled(
        model["state"], f'<input type="number" disabled value="{model["state"]["value"]}">'
    )


def dropdown(model, models):
    state = model["state"]
    chosen = "" if state["index"] is None else state["_options_labels"][state["index"]]
    return labelled(state, f"<select disabled><option>{html.escape(chosen)}</option></select>")


def radio(model, models):
    state = model["state"]
    rows = (
        f'<label><input type="radio" disabled{" checked" if n == state["index"] else ""}> '
        f"{html.escape(words)}</label>"
        for n, words in enumerate(state["_options_labels"])
    )
    return f'<div class="still-column">{"".join(rows)}</div>'


def button(model, models):
    return f'<button type="button" disabled>{html.escape(model["state"]["description"])}</button>'


def play(model, models):
    return '<button type="button" disabled aria-label="play">▶</button>'


def words(model, models):
    return f"<div>{model['state']['value']}</div>" if model["state"]["value"] else ""


def image(model, models):
    data = next(buffer["data"] for buffer in model["buffers"] if buffer["path"] == ["value"])
    return f'<img alt="The picture at this step" src="data:image/png;base64,{data}">'


def other(model, models):
    return f"<p><em>Something to try out is here. {NOTE}</em></p>"


def output(model, models):
    return "".join(shown(each) for each in model["state"]["outputs"])


def shown(output):
    """HTML for one output inside a widget: a picture, HTML, or text."""
    data = output.get("data", {})
    if "image/png" in data:
        return picture(output)
    if "text/html" in data:
        return data["text/html"]
    return f"<pre>{html.escape(output.get('text') or data.get('text/plain', ''))}</pre>"


DRAW = {
    "VBoxModel": box,
    "HBoxModel": box,
    "IntSliderModel": slider,
    "FloatSliderModel": slider,
    "FloatProgressModel": progress,
    "IntProgressModel": progress,
    "BoundedIntTextModel": number,
    "DropdownModel": dropdown,
    "RadioButtonsModel": radio,
    "ButtonModel": button,
    "PlayModel": play,
    "HTMLModel": words,
    "ImageModel": image,
    "OutputModel": output,
    "AnyModel": other,
}  # anywidget: drawn by a script of its own
