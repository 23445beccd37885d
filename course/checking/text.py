"""Text for learners: Markdown that a notebook renders and a terminal prints, and code in HTML."""

import html


class Note:
    """Markdown text; its repr is the text itself."""

    def __init__(self, markdown):
        self.markdown = markdown

    def __repr__(self):
        return self.markdown

    def _repr_markdown_(self):
        return self.markdown


def marked_up(text: str) -> str:
    """Escaped HTML in which `code` is set as code."""
    parts = html.escape(text).split("`")
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts))
