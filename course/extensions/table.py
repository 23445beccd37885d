"""The table of routes and features: tried here and now, or as recorded on a GPU."""

import html
from dataclasses import dataclass

import torch

from course.extensions import features, routing, versions
from utils import pick, results

#: What a cell shows
SIGNS = {
    features.WORKS: "✓",
    features.UNKNOWN: "·",
}
NO = "✗"


@dataclass(frozen=True)
class Table:
    """rows: feature -> route -> outcome, as `features.attempt` says it. columns: the routes."""

    title: str
    columns: tuple[str, ...]
    rows: dict[str, dict[str, str]]

    def sign(self, feature: str, column: str) -> str:
        outcome = self.rows[feature].get(column, features.UNKNOWN)
        return SIGNS.get(outcome, NO)

    def differing(self) -> "Table":
        """Only the rows in which not all routes can do what is asked."""
        rows = {
            name: row
            for name, row in self.rows.items()
            if any(self.sign(name, column) == NO for column in self.columns)
        }
        title = f"{self.title}: {len(rows)} of {len(self.rows)} rows have a {NO}"
        return Table(title, self.columns, rows)

    def __repr__(self):
        width = max(map(len, self.rows))
        lines = [self.title, " " * width + "  " + "  ".join(self.columns)]
        for feature in self.rows:
            signs = (self.sign(feature, name).center(len(name)) for name in self.columns)
            lines.append(f"{feature:<{width}}  " + "  ".join(signs))
        return "\n".join(lines)

    def _repr_html_(self):
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(map(self._row, self.rows))
        style = "font-size:12px;line-height:1.15"
        title = f"<caption>{html.escape(self.title)}</caption>"
        return f'<table style="{style}">{title}<tr><th></th>{head}</tr>{body}</table>'

    def _row(self, feature):
        cells = "".join(self._cell(feature, name) for name in self.columns)
        return f"<tr><th>{feature.replace('_', ' ')}</th>{cells}</tr>"

    def _cell(self, feature, name):
        outcome = self.rows[feature].get(name, features.UNKNOWN)
        hint = html.escape(outcome, quote=True)
        return f'<td style="text-align:center" title="{hint}">{self.sign(feature, name)}</td>'


def tried_here(names=None) -> Table:
    """Take each route that can be taken, and try every feature on it."""
    routes = [route for route in routing.ROUTES_BY_NAME.values() if route.available]
    chosen = [route for route in routes if names is None or route.name in names]
    rows = {feature: {} for feature in features.FEATURES}
    for route in chosen:
        for feature, outcome in outcomes_of(route).items():
            rows[feature][route.label] = outcome
    where = pick(gpu="on this GPU", cpu="on this CPU; · is what only a GPU can tell")
    return Table(f"Tried just now, {where}", tuple(route.label for route in chosen), rows)


def outcomes_of(route: routing.Route) -> dict[str, str]:
    """Feature -> outcome for a route; one that cannot be built has none of them."""
    try:
        namespace = routing.take(route.name).namespace
    except Exception as error:
        why = f"no: it was not built: {str(error).strip().splitlines()[0][:150]}"
        return dict.fromkeys(features.FEATURES, why)
    operators = getattr(torch.ops, namespace)
    device = pick(gpu="cuda", cpu="cpu")
    return {name: features.attempt(name, operators, device) for name in features.FEATURES}


def recorded() -> Table | None:
    """The table that a GPU gave, or None where none is recorded."""
    start = "extensions/feature/"
    entries = [entry for entry in results.load() if entry["name"].startswith(start)]
    if not entries:
        return None
    rows = {}
    for entry in entries:
        feature, name = entry["name"].removeprefix(start).split("/")
        outcome = features.WORKS if entry["value"] else "no"
        rows.setdefault(feature, {})[routing.ROUTES_BY_NAME[name].label] = outcome
    order = [feature for feature in features.FEATURES if feature in rows]
    columns = tuple(route.label for route in routing.ROUTES_BY_NAME.values())
    title = f"Recorded on {entries[0]['gpu']}, {entries[0]['date'][:10]}"
    return Table(title, columns, {feature: rows[feature] for feature in order})


def costs() -> str:
    """Lines, seconds to the first gradient, and microseconds a call of each route, as recorded."""
    lines = [f"{'':20}{'lines':>8}{'build':>10}{'call':>10}{'with gradient':>16}"]
    for name, route in routing.ROUTES_BY_NAME.items():
        build = results.find(f"extensions/build/{name}")
        if build is None:
            continue
        call = results.find(f"extensions/overhead/{name}")["value"]
        slow = results.find(f"extensions/overhead/{name}_with_gradient")["value"]
        seconds = f"{build['value']:.1f} s"
        lines.append(f"{route.label:20}{route.lines:8}{seconds:>10}{call:7.1f} µs{slow:13.1f} µs")
    if len(lines) == 1:
        return "nothing is recorded yet"
    add = results.find("extensions/overhead/torch_add")
    add_slow = results.find("extensions/overhead/torch_add_with_gradient")["value"]
    lines.append(f"{'torch: x + x':38}{add['value']:7.1f} µs{add_slow:13.1f} µs")
    lines.append(f"({add['gpu']}, {add['date'][:10]})")
    return "\n".join(lines)


def wheels() -> str:
    """What became of one wheel with other versions of PyTorch, and of one on a GPU."""
    return f"{versions.text()}\n{own_version()}"


def own_version() -> str:
    """How many of the package's tests passed with the PyTorch that built it, as recorded."""
    passed = results.find("extensions/package/tests_passed")
    if passed is None:
        return "on a GPU: not recorded yet"
    where = f"{passed['gpu']}, {passed['date'][:10]}"
    torch_used = passed["versions"]["torch"]
    return f"on a GPU, PyTorch {torch_used}: {passed['value']:.0f} tests passed ({where})"


#: Whose kernels the operator runs on.
CONVOLUTIONS = {"this_shape": "made for this shape", "any_shape": "for any shape"}


def convolution() -> str:
    """The convolution's operator beside PyTorch's, forward and both gradients, as recorded."""
    lines = [convolution_line(way) for way in CONVOLUTIONS]
    return "\n".join(lines)


def convolution_line(way: str) -> str:
    """One of CONVOLUTIONS beside PyTorch's."""
    start, kernels = "extensions/conv3x3", CONVOLUTIONS[way]
    ratio = results.find(f"{start}/{way}/speedup_over_torch")
    if ratio is None:
        return f"kernels {kernels}: nothing is recorded yet"
    found = [results.find(f"{start}/{name}/time")["value"] for name in (way, "torch")]
    ours, theirs = (f"{time:.3f} ms" for time in found)
    speed = f"{ratio['value']:.2f} times PyTorch's speed"
    where = f"{ratio['gpu']}, {ratio['date'][:10]}"
    return f"kernels {kernels}: {ours}, PyTorch {theirs}: {speed} ({where})"


def races() -> str:
    """The fused operator beside PyTorch eager and compiled, as recorded."""
    start = "extensions/fused/"
    found = {}
    for entry in results.load():
        if entry["name"].startswith(start) and entry["name"].endswith("/speedup_over_best"):
            found[entry["name"].removeprefix(start).removesuffix("/speedup_over_best")] = entry
    if not found:
        return "nothing is recorded yet"
    lines = [f"{'':36}{'ours':>10}{'compiled':>10}{'eager':>10}{'of copy':>9}{'speedup':>9}"]
    for path, entry in sorted(found.items()):
        ways = ("ours", "compiled", "eager")
        times = [results.find(f"{start}{path}/{way}/time")["value"] for way in ways]
        share = results.find(f"{start}{path}/ours/share_of_copy")["value"]
        shown = "".join(f"{time:7.3f} ms" for time in times)
        lines.append(f"{path:36}{shown}{share:9.0%}{entry['value']:8.2f}×")
    lines.append(f"({entry['gpu']}, {entry['date'][:10]})")
    return "\n".join(lines)
