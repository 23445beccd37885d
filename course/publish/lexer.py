"""Colours for a cell's code: Python with IPython's magics, and the languages of `%%writefile` and
`%%cuda`.
"""

import re

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Name

LANGUAGES = {
    "cu": "cuda",
    "cuh": "cuda",
    "h": "cuda",
    "cpp": "cpp",
    "py": "python",
    "Makefile": "make",
}


class CellLexer(Lexer):
    """Pygments' view of one code cell."""

    name = "A notebook's code cell"
    aliases = ["notebook-cell"]

    def get_tokens_unprocessed(self, text):
        start, language = 0, "ipython3"
        if magic := re.match(r"%%(\w+)(?:.*[./ ](\w+))?.*\n?", text):
            start = magic.end()
            language = LANGUAGES.get(magic[2], "text")
            language = {"bash": "bash", "cuda": "cuda"}.get(magic[1], language)
            yield 0, Name.Decorator, magic.group()
        for position, kind, value in get_lexer_by_name(language).get_tokens_unprocessed(
            text[start:]
        ):
            yield start + position, kind, value
