"""A folder served on this machine, as a website's host serves it, for browsers to open."""

import contextlib
import functools
import gzip
import http.server
import io
import threading
import time
from pathlib import Path

CHUNK = 1 << 14  # bytes that are sent at once over a slow line


class Handler(http.server.SimpleHTTPRequestHandler):
    """Says what files are. rate: bytes per second that all of it sends, compressed; or None."""

    extensions_map = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }
    line = threading.Lock()
    rate = None

    def log_message(self, *_):
        pass

    def send_head(self):
        path = Path(self.translate_path(self.path))
        if self.rate is None or not path.is_file():
            return super().send_head()
        data = compressed(path)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        return io.BytesIO(data)

    def copyfile(self, source, outputfile):
        if self.rate is None:
            super().copyfile(source, outputfile)
            return
        while chunk := source.read(CHUNK):
            with self.line:
                time.sleep(len(chunk) / self.rate)
            outputfile.write(chunk)


@functools.cache
def compressed(path):
    """A file's bytes as a host sends them."""
    return gzip.compress(path.read_bytes(), 6)


@contextlib.contextmanager
def served(folder, rate=None):
    """Serve a folder; yields its address. rate: bytes per second of the line, or None."""
    kind = type("Line", (Handler,), {"rate": rate})
    handler = functools.partial(kind, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
