"""Where the course is published: one place says it, one command writes it everywhere else.

    make address URL=https://github.com/ada/cuda-course
    python -m course.publish.address https://github.com/ada/cuda-course       the same

sets the address in `pyproject.toml`, `README.md` and `course/setup.md`, and gives every notebook
its frame: the links above and below, the one to Colab, the set-up cells
(`course/publish/frame.py`). Without an address it writes the known one, which also gives a new
chapter all these cells, and all of them the tag of a new version.
"""

import re
import sys

import nbformat

from course.chapters import notebooks
from course.publish.frame import framed
from utils.files import ROOT, write_whole
from utils.setup.colab import repository, tag

#: What names the address, besides pyproject.toml and the notebooks
TEXTS = ("README.md", "course/setup.md", "course/instructors.md")


def write_notebook(path):
    """Give a notebook its frame, keep its outputs; whether anything changed."""
    before = path.read_text(encoding="utf-8")
    notebook = nbformat.v4.reads(before)
    framed(notebook, path)
    after = nbformat.v4.writes(notebook) + "\n"
    write_whole(path, after)
    return after != before


def set_address(url):
    """Write the address into pyproject.toml and, where it stood, the texts that name it.

    ValueError for another host.
    """
    if not re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+", url):
        raise ValueError(
            "Colab opens notebooks from GitHub: the address is https://github.com/OWNER/NAME, "
            f"not {url}"
        )
    old, new = (
        address.removeprefix("https://github.com/")
        for address in (repository(), url.removesuffix(".git"))
    )
    for name in ("pyproject.toml", *TEXTS):
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        path.write_text(
            re.sub(rf"(github(?:\.com)?/){re.escape(old)}(?![\w.-])", rf"\g<1>{new}", text).replace(
                on_pages(old), on_pages(new)
            ),
            encoding="utf-8",
        )


def on_pages(repository):
    """Where GitHub Pages shows a repository's website. repository: OWNER/NAME."""
    owner, name = repository.split("/")
    return f"https://{owner.lower()}.github.io/{name}/"


def set_tag():
    """Write this version's tag into the texts' links to Colab."""
    links = r"(colab\.research\.google\.com/github/[\w.-]+/[\w.-]+/blob/)[^/]+/"
    for name in TEXTS:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        write_whole(path, re.sub(links, rf"\g<1>{tag()}/", text))


def main(arguments):
    if arguments:
        set_address(arguments[0])
    set_tag()
    changed = [path for path in notebooks() if write_notebook(path)]
    print(f"{repository()}: {len(changed)} of {len(notebooks())} notebooks changed")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ValueError as error:
        sys.exit(f"error: {error}")
