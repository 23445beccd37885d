"""What is wrong with a notebook as a file: each rule returns a list of problems, empty when there
are none.

Whether the cells run is nbval's to say. Here is what a run cannot show: that diffs stay small, that
slides and links work, that nothing of the author's machine is left inside, and that no output hides
an error.
"""

import base64
import json
import re
import warnings
from collections import Counter
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import nbformat

# No "notes": a learner would meet them, and the speaker finds them in a cell's metadata
SLIDE_TYPES = {"slide", "subslide", "fragment", "skip", "-"}
LONGEST_CODE = 30  # lines: what fits on a slide, and in a head
LARGEST_OUTPUT = 300_000  # characters of one output, pictures included (as base64)
LARGEST_NOTEBOOK = 1_500_000  # characters
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

# Someone's home or working folder, a kernel's temporary file, a drive letter
# /home/learner and JupyterHub's /home/jovyan are of containers
LOCAL_PATH = re.compile(
    r"(?<![\w./~-])(?:/(?:home(?!/(?:learner|jovyan)\b)|Users|root|work|workspace|mnt)/[\w.~-]+"
    r"|/[\w./~-]+/site-packages/|/tmp/ipykernel_\w+|/var/folders/\w+|[A-Z]:\\Users)"
)
# (picture or not, words, target): ![words](target "title"), the words with brackets of their own at
# most once
MARKDOWN_LINK = re.compile(
    r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]"
    r"\(\s*<?([^)\s>]+)>?(?:\s+[\"'][^)]*[\"'])?\s*\)"
)
REMOTE_PICTURE = re.compile(r"!\[[^\]]*\]\((https?://[^)\s]+)")
HTML_IMAGE = re.compile(r"<img\b[^>]*>", re.IGNORECASE)
SVG_IMAGE = re.compile(r"data:image/svg\+xml;base64,([^\"]+)")
HTML_TARGET = re.compile(
    r"<(?:img|a)\b[^>]*?\b(?:src|href)\s*=\s*[\"']([^\"']+)[\"']", re.IGNORECASE
)


def read(path):
    """The notebook as it is: nbformat's own `read` repairs some of what should be found here."""
    return nbformat.v4.reads(Path(path).read_text(encoding="utf-8"))


def canonical(path):
    """The file is a valid notebook, byte for byte as nbformat writes it."""
    text = Path(path).read_bytes().decode("utf-8")
    try:
        notebook = nbformat.v4.reads(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # cell ids: see `metadata`
            nbformat.validate(json.loads(text), version=4)
    except (ValueError, AttributeError, nbformat.ValidationError) as error:
        return [f"not a valid notebook: {str(error).splitlines()[0]}"]
    if text != nbformat.v4.writes(notebook) + "\n":
        return [
            "not as nbformat writes it: `nbformat.write(nbformat.read(path, 4), path)` puts it "
            "right"
        ]
    return []


def metadata(notebook):
    """Cell ids are there and unique, the kernel is python3, and no widget state is left over."""
    problems = []
    ids = [cell.get("id") for cell in notebook.cells]
    problems += [f"cell {n}: no id" for n, id in enumerate(ids) if not id]
    problems += [
        f"cell id {id} is used {count} times"
        for id, count in Counter(ids).items()
        if id and count > 1
    ]
    kernel = notebook.metadata.get("kernelspec", {}).get("name")
    if kernel != "python3":
        problems.append(f"kernelspec is {kernel!r}, not 'python3'")
    saved = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
    shown = {
        output.data[WIDGET_VIEW].model_id
        for _, output in outputs(notebook)
        if WIDGET_VIEW in output.get("data", {})
    }
    if saved and not shown:
        problems.append("widget state is saved, but no output shows a widget")
    problems += [
        f"an output shows widget {id}, whose state is not saved"
        for id in sorted(shown - set(saved))
    ]
    problems += [
        f"cell {n}: where widgets do not run, its output is the widget's name in Python"
        for n, output in outputs(notebook)
        if output.get("data", {}).get("text/plain", "").startswith("interactive(children")
    ]
    return problems


def labelled(notebook):
    """(number and id, cell) for every cell: the number is counted from 0."""
    return [(f"{n} ({cell.get('id')})", cell) for n, cell in enumerate(notebook.cells)]


def slides(notebook):
    """Every cell says which slide it is part of."""
    return [
        f"cell {n}: slideshow.slide_type is {kind!r}"
        for n, cell in labelled(notebook)
        if (kind := cell.metadata.get("slideshow", {}).get("slide_type")) not in SLIDE_TYPES
    ]


def short_cells(notebook):
    """No code cell is longer than a slide."""
    return [
        f"cell {n}: {lines} lines of code, {LONGEST_CODE} at most"
        for n, cell in labelled(notebook)
        if cell.cell_type == "code" and (lines := len(cell.source.splitlines())) > LONGEST_CODE
    ]


def outputs(notebook):
    """(cell number and id, output) for every output of the notebook."""
    return [(n, output) for n, cell in labelled(notebook) for output in cell.get("outputs", [])]


def output_text(output):
    """Everything in an output that a reader may see as text (so not the pictures)."""
    texts = [output.get("text", ""), *output.get("traceback", [])]
    texts += [
        value
        for kind, value in output.get("data", {}).items()
        if isinstance(value, str) and (kind.startswith("text/") or kind == "image/svg+xml")
    ]
    return "\n".join(texts)


def honest_outputs(notebook):
    """No output is an error that its cell does not announce, or of a cell that did not run."""
    problems = []
    for n, cell in labelled(notebook):
        if cell.cell_type != "code":
            continue
        expected = "raises-exception" in cell.metadata.get("tags", [])
        errors = [output for output in cell.outputs if output.output_type == "error"]
        if errors and not expected:
            problems.append(
                f"cell {n}: its output is an error, {errors[0].ename}: {errors[0].evalue}"
            )
        if cell.outputs and expected and not errors:
            problems.append(f"cell {n}: tagged raises-exception, but its output shows no error")
        if cell.outputs and cell.execution_count is None:
            problems.append(f"cell {n}: has outputs but no execution count")
    return problems


def small_outputs(notebook):
    """Outputs stay small enough to review and to clone."""
    sizes = [(n, len(json.dumps(output))) for n, output in outputs(notebook)]
    problems = [
        f"cell {n}: an output of {size:,} characters, {LARGEST_OUTPUT:,} at most"
        for n, size in sizes
        if size > LARGEST_OUTPUT
    ]
    total = sum(size for _, size in sizes)
    if total > LARGEST_NOTEBOOK:
        problems.append(
            f"all outputs together have {total:,} characters, {LARGEST_NOTEBOOK:,} at most"
        )
    return problems


def no_local_paths(notebook, root):
    """No path of the machine that the notebook was written on, `root` being the project's folder
    there.
    """

    def found(text):
        match = LOCAL_PATH.search(text)
        return match.group() if match else (str(root) if str(root) in text else None)

    problems = [
        f"cell {n}: local path {path}"
        for n, cell in labelled(notebook)
        if (path := found(cell.source))
    ]
    problems += [
        f"cell {n}: local path {path} in its output"
        for n, output in outputs(notebook)
        if (path := found(output_text(output)))
    ]
    return problems


def alt_texts(notebook):
    """Every picture says in words what it shows, those of outputs in HTML: JupyterLab shows no
    other description.
    """
    problems = []
    for n, output in outputs(notebook):
        data = output.get("data", {})
        if "text/html" not in data and any(kind.startswith("image/") for kind in data):
            problems.append(f"cell {n}: the picture of its output has no alt text in JupyterLab")
        problems += [
            f"cell {n}: {tag[:80]} of its output has no alt text"
            for tag in HTML_IMAGE.findall(data.get("text/html", ""))
            if not re.search(r"\balt\s*=\s*[\"'][^\"']*\w", tag)
        ]
    for n, cell in labelled(notebook):
        if cell.cell_type != "markdown":
            continue
        text = without_code(cell.source)
        problems += [
            f"cell {n}: picture {target} has no alt text"
            for bang, words, target in MARKDOWN_LINK.findall(text)
            if bang and not words.strip()
        ]
        problems += [
            f"cell {n}: {tag} has no alt text"
            for tag in HTML_IMAGE.findall(text)
            if not re.search(r"\balt\s*=\s*[\"'][^\"']*\w", tag)
        ]
    return problems


def whole_pictures(notebook):
    """Every SVG inside an <img> is XML that a browser takes: it shows nothing at all of any other,
    though it forgives the same lines within HTML.
    """
    problems = []
    for n, output in outputs(notebook):
        for data in SVG_IMAGE.findall(output.get("data", {}).get("text/html", "")):
            try:
                ElementTree.fromstring(base64.b64decode(data))
            except ElementTree.ParseError as error:
                problems.append(f"cell {n}: no browser shows an SVG of its output: {error}")
    return problems


def links(notebook, path):
    """Relative links lead to files that are there, # links to headings, attachment links to
    attachments; no picture comes from the network.
    """
    problems = []
    text = "\n".join(
        without_code(cell.source) for cell in notebook.cells if cell.cell_type == "markdown"
    )
    headings = {
        re.sub(r"\s+", "-", re.sub(r"[`*]", "", title).strip())
        for title in re.findall(r"^#+\s+(.+?)\s*#*$", text, re.MULTILINE)
    }
    headings |= set(re.findall(r"<a\s+(?:id|name)=[\"']([^\"']+)[\"']", text))
    for n, cell in labelled(notebook):
        if cell.cell_type != "markdown":
            continue
        text = without_code(cell.source)
        problems += [
            f"cell {n}: {picture} comes from the network: broken without one"
            for picture in REMOTE_PICTURE.findall(text)
        ]
        for target in [
            target for _, _, target in MARKDOWN_LINK.findall(text)
        ] + HTML_TARGET.findall(text):
            if target.startswith("attachment:"):
                if unquote(target.removeprefix("attachment:")) not in cell.get("attachments", {}):
                    problems.append(f"cell {n}: no such attachment: {target}")
            elif target.startswith("#"):
                if unquote(target[1:]) not in headings:
                    problems.append(f"cell {n}: no heading {target} in this notebook")
            elif not re.match(r"[a-zA-Z][\w+.-]*:|//", target):
                if not (Path(path).parent / unquote(target.partition("#")[0])).exists():
                    problems.append(f"cell {n}: {target} leads nowhere")
    return problems


def without_code(markdown):
    """Markdown without code blocks and spans, where brackets and tags mean something else."""
    markdown = re.sub(r"^(```|~~~).*?^\1", "", markdown, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", markdown)


def setup_cell(notebook):
    """The source of the one cell tagged `setup`, or None if there is not exactly one."""
    tagged = [cell.source for cell in notebook.cells if "setup" in cell.metadata.get("tags", [])]
    return tagged[0] if len(tagged) == 1 else None


def problems(path, root):
    """Everything wrong with the notebook at `path` in the project at `root`."""
    found = canonical(path)
    if found and found[0].startswith("not a valid"):
        return found
    notebook = read(path)
    rules = metadata, slides, short_cells, honest_outputs, small_outputs, alt_texts, whole_pictures
    for rule in rules:
        found += rule(notebook)
    return found + no_local_paths(notebook, root) + links(notebook, path)
