"""Keeps what Python has compiled in a page, so that the next start need not compile it again.

All of it is one archive: Python's own library, which is an archive already, with the compiled
modules added to it. The library's lie beside their sources, where Python looks for them; below
`kept/` are those of other modules, and matplotlib's list of its fonts. The page keeps the archive
under an address among its version's files, so that it goes when the sources go it was made from.

The page's worker (`web/worker.js`) calls `unpack` whenever it has unpacked packages, and `packing`
when there is nothing to do.
"""

import importlib.util
import io
import marshal
import os
import sys
import time
import zipfile
from importlib.machinery import SourceFileLoader
from zipimport import zipimporter

LIBRARY = "/lib/python312.zip"
PACKAGES = "/lib/python3.12/site-packages"
FOLDERS = ("/course/", f"{PACKAGES}/")  # modules that lie elsewhere are none of the course's
FONTS = f"{PACKAGES}/matplotlib/fontlist.json"
KEPT = "kept/"
#: A compiled file begins so where Python need not look at its source (PEP 552): sources are
#: unpacked at each start, and have the date of that
UNCHECKED = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)

unpacked = set()  # names in the archive
unpacked_at = 0.0  # a source that is written later is none of the course's, either


def unpack(library=LIBRARY):
    """Put what is kept where Python looks for it, for the packages that are there by now."""
    global unpacked_at
    with zipfile.ZipFile(library) as archive:
        for name in archive.namelist():
            if not name.startswith(KEPT) or name in unpacked:
                continue
            path = "/" + name.removeprefix(KEPT)
            folder = os.path.dirname(path)
            if os.path.isdir(folder.removesuffix("/__pycache__")):
                os.makedirs(folder, exist_ok=True)
                with open(path, "wb") as file:
                    file.write(archive.read(name))
                unpacked.add(name)
    unpacked_at = time.time()


def packing(library=LIBRARY, folders=FOLDERS, fonts=FONTS):
    """Make the archive anew, one module at each step, so that cells can run in between.

    A generator that returns the archive's bytes, or None where there is nothing to add.
    """
    data = io.BytesIO()
    with open(library, "rb") as file:
        data.write(file.read())
    with zipfile.ZipFile(data, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        known = set(archive.namelist())
        before = len(known)
        for module in list(sys.modules.values()):
            spec = getattr(module, "__spec__", None)
            name = name_of(spec, library, folders)
            if name is None or name in known:
                continue
            known.add(name)
            archive.writestr(name, UNCHECKED + marshal.dumps(spec.loader.get_code(spec.name)))
            yield
        name = KEPT + fonts.lstrip("/")
        if name not in known and os.path.exists(fonts) and os.path.getmtime(fonts) > unpacked_at:
            known.add(name)
            archive.write(fonts, name)
    return data.getvalue() if len(known) > before else None


def name_of(spec, library, folders):
    """The name of a compiled module in the archive; None of one that is not kept."""
    loader = getattr(spec, "loader", None)
    if isinstance(loader, zipimporter) and loader.archive == library:
        return os.path.splitext(os.path.relpath(spec.origin, library))[0] + ".pyc"
    if isinstance(loader, SourceFileLoader) and is_as_it_came(spec.origin, folders):
        return KEPT + spec.cached.lstrip("/")
    return None


def is_as_it_came(path, folders):
    """Whether a source is the course's, and the same since it was unpacked."""
    return path.startswith(folders) and os.path.getmtime(path) <= unpacked_at
