"""A piece of Markdown that a notebook renders and a terminal prints."""


class Note:
    """Markdown text; its repr is the text itself."""

    def __init__(self, markdown):
        self.markdown = markdown

    def __repr__(self):
        return self.markdown

    def _repr_markdown_(self):
        return self.markdown
