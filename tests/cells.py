"""What tests do with a chapter's cells."""

import re
from pathlib import Path


def write_file(cell, folder: Path) -> None:
    """Write, below `folder`, what a %%writefile cell writes; nothing for any other cell."""
    written = re.match(r"%%writefile (-a )?(\S+)\n", cell.source)
    if cell.cell_type == "code" and written:
        path = folder / written[2]
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a" if written[1] else "w", encoding="utf-8") as file:
            file.write(cell.source[written.end() :] + "\n")
