"""NVIDIA's tools from a notebook: nsys, CUPTI, ncu, compute-sanitizer, cuda-gdb, nvidia-smi.

Each function runs the tool on a program where there is a GPU and the tool, and returns a `Report`.
While the recording command runs (`make record`), the report is also kept in ``assets/reports``.
Elsewhere the recorded report is shown, with its GPU and date; where none is recorded, the report
says in one line what is missing and how to get it.
"""

import csv
import functools
import io
import json
import os
import re
import shlex
import shutil
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from utils import engine, gpu_queue, results
from utils.files import ASSETS
from utils.plots import ACCENT, BLOCK_COLOURS, INK, chart
from utils.tools import process

if TYPE_CHECKING:
    from utils.plots.picture import Picture

FOLDER = ASSETS / "reports"
SECONDS = 120
LARGEST = 60_000  # characters of one recorded report
HEADER = re.compile(r'("ID",|"?(Time \(%\)|Start \(ns\))"?,)')  # of a table in CSV

CUPTI = "CUPTI"  # a library: torch.profiler asks it
_TOOLKIT = "it comes with the CUDA toolkit, https://developer.nvidia.com/cuda-downloads"
GET = {
    "nsys": f"{_TOOLKIT}, and alone: https://developer.nvidia.com/nsight-systems",
    "ncu": f"{_TOOLKIT}, and alone: https://developer.nvidia.com/nsight-compute",
    "compute-sanitizer": "pip install 'cuda-toolkit[sanitizer]==13.0.*'",
    "cuda-gdb": _TOOLKIT,
    "nvidia-smi": "it comes with the NVIDIA driver",
}
COUNTERS = (
    "the driver lets only administrators read the GPU's counters; on a machine of your own see "
    "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
)

#: Nsight Compute's counters that answer "which of the three limits?", and what this course calls
#: them.
METRICS = {
    "gpu__time_duration.sum": "time",
    "dram__bytes.sum": "bytes from and to memory",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "memory throughput",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "SM throughput",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "achieved occupancy",
    "smsp__inst_executed.sum": "warp instructions",
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio": "sectors a load "
    "request",
    "launch__registers_per_thread": "registers a thread",
}


@dataclass(frozen=True)
class Report:
    """What a tool said, or why it said nothing (`text` is then empty and `note` has the line).

    gpu, date, command: where, when and how it was made. recorded: whether it was made elsewhere.
    """

    tool: str
    text: str = ""
    note: str = ""
    gpu: str = ""
    date: str = ""
    command: str = ""
    recorded: bool = False

    def __bool__(self) -> bool:
        return bool(self.text)

    def __repr__(self) -> str:
        return "\n".join(filter(None, (self.heading(), self.text)))

    def heading(self) -> str:
        """One line: what is missing, or the command, and for a recorded report its GPU and date."""
        where = f"recorded on {self.gpu}, {self.date[:10]}: " if self.recorded else ""
        made = f"{where}$ {self.command}" if self.text else ""
        return " · ".join(filter(None, (self.note, made)))


@dataclass(frozen=True, repr=False)
class Table(Report):
    """A report in CSV, shown as a table. `rows` holds a dict for each line."""

    @functools.cached_property
    def rows(self) -> list[dict]:
        return parse_csv(self.text)

    def __repr__(self) -> str:
        if not self.text:
            return self.heading()
        names = list(self.rows[0]) if self.rows else []
        lines = [names]
        lines += [[_shown(row[name]) for name in names] for row in self.rows]
        columns = zip(*lines, strict=True)
        widths = [max(map(len, column)) for column in columns]
        text = [self.heading()]
        for line in lines:
            cells = map(str.ljust, line, widths)
            text.append("  ".join(cells).rstrip())
        return "\n".join(text)

    def select(self, *names: str, rename: dict | None = None) -> "Table":
        """The same report with some of its columns."""
        columns = {name: name for name in names} | (rename or {})
        kept = [{columns[name]: row.get(name, "") for name in names} for row in self.rows]
        return replace(self, text=_to_csv(kept))


R = TypeVar("R", bound=Report)


def find(tool: str) -> str | None:
    """Path of a tool: on the PATH, in CUDA_HOME, usual folders, pip's packages; or None."""
    if tool == CUPTI:
        return sys.executable  # PyTorch brings it
    path = shutil.which(tool)
    if path:
        return path
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    folders = [Path(home) / "bin" for home in homes if home]
    folders.append(Path("/usr/local/cuda/bin"))
    folders.append(Path(sysconfig.get_paths()["purelib"]) / "nvidia" / "cu13" / "bin")
    folders += sorted(Path("/opt/nvidia").glob("nsight-compute/*"), reverse=True)
    folders += sorted(Path("/opt/nvidia").glob("nsight-systems/*/bin"), reverse=True)
    paths = (folder / tool for folder in folders)
    return next((str(path) for path in paths if path.is_file()), None)


def absent(tool: str) -> str:
    """Why a tool cannot be used here, in one line; empty where it can."""
    missing = "" if find(tool) else f"{tool} is not on this machine ({GET[tool]})"
    if engine.has_gpu():
        return missing
    if missing:
        return f"{missing}, and there is no GPU"
    return f"there is no GPU here for {tool} to look at"


# ---- the tools


def nsys(command: Sequence[str], name: str, report: str = "cuda_gpu_kern_sum") -> Table:
    """Nsight Systems: what ran when, on host and GPU; an `nsys stats` report of `command`.

    name: of the recorded report.
    report: cuda_gpu_kern_sum (kernels), cuda_gpu_mem_time_sum (copies), cuda_api_sum (calls of the
        host), nvtx_pushpop_sum (your ranges), cuda_gpu_trace (each kernel and copy with its start).
    """

    def run() -> str:
        profile = _profiled(tuple(command))
        return _run(
            "nsys",
            [
                "stats",
                "--force-export=true",
                "--quiet",
                "--format",
                "csv",
                "--report",
                report,
                profile,
            ],
        )

    shown = f"nsys profile --trace=cuda,nvtx {_words(command)}; nsys stats --report {report}"
    return _report(Table, "nsys", f"{name}.{report}.csv", shown, run, clean=csv_part)


@functools.cache
def _profiled(command: tuple[str, ...]) -> str:
    """The .nsys-rep of a run of this command; it runs once a session."""
    output = Path("build").resolve() / f"nsys-{abs(hash(command)):x}"
    _run(
        "nsys",
        [
            "profile",
            "--trace=cuda,nvtx",
            "--force-overwrite=true",
            "--output",
            str(output),
            *command,
        ],
    )
    return f"{output}.nsys-rep"


def gpu_trace(script: str, name: str) -> Table:
    """CUPTI by way of torch.profiler: each kernel and copy of a Python script, as nsys lists them.

    name: of the recorded report. The columns are those of nsys's cuda_gpu_trace.
    """

    def run() -> str:
        return _run(CUPTI, ["-P", str(Path(__file__).with_name("gpu_trace.py")), script])

    shown = f"python utils/tools/gpu_trace.py {script}"
    return _report(Table, CUPTI, f"{name}.gpu_trace.csv", shown, run, clean=csv_part)


def ncu(
    command: Sequence[str], name: str, metrics: dict[str, str] = METRICS, kernels: str = ""
) -> Table:
    """Nsight Compute: the counters of each kernel that `command` launches, a row a kernel.

    metrics: ncu's name -> column.
    kernels: a regular expression; only kernels whose name it matches.
    Every kernel is run again and again until all counters are read, so a program takes much longer
    than it does alone.
    """
    arguments = ["--csv", "--page", "raw", "--metrics", ",".join(metrics)]
    if kernels:
        arguments += ["--kernel-name", f"regex:{kernels}"]

    def run() -> str:
        return _run("ncu", [*arguments, *command])

    def clean(text: str) -> str:
        rows = parse_csv(csv_part(text))
        return _to_csv([by_kernel(row, metrics) for row in rows if row.get("Kernel Name")])

    return _report(
        Table,
        "ncu",
        f"{name}.ncu.csv",
        f"ncu --csv --page raw --metrics … {_words(command)}",
        run,
        clean=clean,
    )


def by_kernel(row: dict, metrics: dict[str, str]) -> dict:
    """One kernel's line of ncu's raw page, with its units in the cells and this course's names."""
    cells = {
        "kernel": re.sub(r"\(.*", "", row["Kernel Name"]),
        "grid": row.get("Grid Size", "").replace(" ", ""),
        "block": row.get("Block Size", "").replace(" ", ""),
    }
    for metric, column in metrics.items():
        if metric in row:
            cells[column] = row[metric]
    return cells


def sanitizer(tool: str, command: Sequence[str], name: str) -> Report:
    """compute-sanitizer with one of its tools: memcheck, racecheck, initcheck or synccheck.

    Build the program with ``-lineinfo``, so that the report names source lines.
    """

    def run() -> str:
        return _run("compute-sanitizer", ["--tool", tool, *command], may_fail=True)

    return _report(
        Report,
        "compute-sanitizer",
        f"{name}.{tool}.txt",
        f"compute-sanitizer --tool {tool} {_words(command)}",
        run,
        clean=essence,
    )


def cuda_gdb(script: str | Path, program: str, name: str) -> Report:
    """cuda-gdb with its commands from a file. Build the program with ``-g -G``."""

    def run() -> str:
        return _run("cuda-gdb", ["-nx", "-q", "-batch", "-x", str(script), program], may_fail=True)

    return _report(
        Report,
        "cuda-gdb",
        f"{name}.cuda-gdb.txt",
        f"cuda-gdb -batch -x {script} {program}",
        run,
        clean=on_device,
    )


def nvidia_smi(*arguments: str, name: str) -> Report:
    """nvidia-smi with these arguments."""
    return _report(
        Report,
        "nvidia-smi",
        f"{name}.txt",
        f"nvidia-smi {_words(arguments)}",
        lambda: _run("nvidia-smi", list(arguments)),
    )


class ToolFailed(RuntimeError):
    """A tool was there and said why it could not do its work."""


def _run(tool: str, arguments: Sequence[str], may_fail: bool = False) -> str:
    with gpu_queue.turn() as turn:
        turn.start()
        done = process.run([find(tool) or tool, *arguments], timeout=SECONDS)
    if "ERR_NVGPUCTRPERM" in done.output:
        raise ToolFailed(f"{tool} was refused: {COUNTERS}")
    if done.returncode and not may_fail:
        raise ToolFailed(
            f"{tool} failed ({process.exit_reason(done.returncode)}): {done.output.strip()[-600:]}"
        )
    return done.output


def _words(command: Sequence[str]) -> str:
    names = (Path(word).name if Path(word).is_absolute() else word for word in command)
    return shlex.join(names)


# ---- reports, recorded and read


def _report(
    kind: type[R],
    tool: str,
    file: str,
    command: str,
    run: Callable[[], str],
    clean: Callable[[str], str] = str.strip,
) -> R:
    why = absent(tool)
    if not why:
        try:
            text = _without_folders(clean(run()))
        except (ToolFailed, process.Timeout) as error:
            why = str(error)
        else:
            report = kind(tool, text, "", engine.the_gpu().name, results.now(), command)
            if os.environ.get(results.RECORD):
                save(report, file)
            return report
    return load(kind, tool, file, why)


def load(kind: type[R], tool: str, file: str, why: str) -> R:
    """The recorded report, with `why` it is shown; if none is recorded, only a note."""
    path = FOLDER / file
    if not path.exists():
        return kind(
            tool,
            note=f"{why}; no report is recorded yet (`make record` on a GPU machine records one)",
        )
    first, _, text = path.read_text(encoding="utf-8").partition("\n")
    made = json.loads(first)
    return kind(
        tool, text.rstrip("\n"), why, made["gpu"], made["date"], made["command"], recorded=True
    )


def save(report: Report, file: str) -> Path:
    """Keep a report in assets/reports.

    A line of JSON (gpu, driver, date, versions, command), then what the tool said.
    """
    made = {
        "gpu": report.gpu,
        "driver": engine.the_gpu().driver,
        "date": report.date,
        "command": report.command,
        "versions": {**results.versions(), **_version_of(report.tool)},
    }
    text = report.text
    if len(text) > LARGEST:
        text = text[:LARGEST].rpartition("\n")[0] + "\n[cut]"
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / file
    path.write_text(json.dumps(made) + "\n" + text + "\n", encoding="utf-8")
    return path


def _version_of(tool: str) -> dict[str, str]:
    if tool == CUPTI:
        return {}  # PyTorch's version says it
    try:
        output = process.run([find(tool) or tool, "--version"], timeout=20).output
    except (OSError, process.Timeout):
        return {}
    version = re.search(r"\d+\.\d+(\.\d+)*", output)
    return {tool: version.group()} if version else {}


def _without_folders(text: str) -> str:
    """No folder of this machine: /srv/me/course/chapters/build/x.cu becomes build/x.cu.

    A table keeps its columns where the Python interpreter loses its folder.
    """
    text = re.sub(r"(?<![\w.:/])/[\w./+-]*?/(?=build/)", "", text)  # nor a part of an address
    return re.sub(
        r"(?<![\w.])/[\w./+-]*/bin/(python[\d.]*)",
        lambda match: match[1].ljust(len(match[0])),
        text,
    )


def on_device(text: str) -> str:
    """cuda-gdb's answers without what it says about threads and libraries of the host."""
    host = re.compile(r"\[(New|Thread|Detaching)\b|Using host libthread_db")
    lines = text.strip().splitlines()
    return "\n".join(line for line in lines if not host.match(line))


def essence(text: str) -> str:
    """compute-sanitizer's findings without host backtraces; other threads' are only counted."""
    #: each a line that is not indented, and the indented ones under it
    findings: list[list[str]] = []
    for line in text.splitlines():
        if re.match(r"=+\s+(Saved host backtrace|Host Frame|Device Frame)|=+\s*$", line):
            continue
        if line.startswith("=========  ") and findings:
            findings[-1].append(line)
        else:
            findings.append([line])
    alike = defaultdict(list)
    for finding in findings:
        text = "\n".join(finding)
        kind = re.sub(r"\(\d+,\d+,\d+\)|0x[0-9a-f]+|\d+ bytes after", "", text)
        alike[kind].append(text)
    lines = []
    for first, *others in alike.values():
        lines.append(first)
        if others:
            lines.append(f"=========     (and {len(others)} more like this)")
    return "\n".join(lines)


def csv_part(text: str) -> str:
    """The CSV in what a tool printed: from its header on, without ==PROF== and the like."""
    kept = []
    width = 0
    for line in text.splitlines():
        if not width and not HEADER.match(line):
            continue
        columns = len(next(csv.reader([line]), []))
        width = width or columns
        if columns == width:
            kept.append(line)
    return "\n".join(kept)


def parse_csv(text: str) -> list[dict]:
    """Rows of a CSV text.

    ncu's second line holds units: they are put behind the numbers of each row.
    """
    rows = list(csv.DictReader(io.StringIO(text)))
    if not rows or rows[0].get("ID") != "" or rows[0].get("Kernel Name"):
        return rows
    units, *rows = rows
    for row in rows:
        for name, unit in units.items():
            row[name] = f"{row[name]} {unit}".strip()
    return rows


def _to_csv(rows: list[dict]) -> str:
    if not rows:
        return ""
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().rstrip("\n")


def number(cell: str) -> float:
    """The number of a cell: "1,234.5 ns" is 1234.5."""
    return float(cell.split()[0].replace(",", ""))


def _shown(cell: str) -> str:
    """A cell as a table shows it: long names shortened, digits grouped."""
    if re.fullmatch(r"\d{5,}", cell):
        return f"{int(cell):,}"
    if len(cell) <= 48:
        return cell
    return cell[:45] + "…"


def plain_name(kernel: str) -> str:
    """A kernel's name without its return type, namespaces, template arguments and parameters."""
    if kernel.startswith("Mem"):  # Memcpy HtoD (Pageable -> Device)
        return kernel
    plain = kernel
    while (shorter := re.sub(r"<[^<>]*>|\([^()]*\)", "", plain)) != plain:
        plain = shorter
    return plain.split("::")[-1].split()[-1]


def timeline(table: Table) -> "Picture":
    """A picture of a cuda_gpu_trace report: a bar for each kernel and copy, a row a name, of the
    eight that took the most time.
    """
    begin = min(number(row["Start (ns)"]) for row in table.rows)
    spans = defaultdict(list)  # of each name (start, duration), in µs
    time: dict[str, float] = defaultdict(float)
    for row in table.rows:
        name = plain_name(row["Name"])
        start = number(row["Start (ns)"]) - begin
        duration = number(row["Duration (ns)"])
        spans[name].append((start / 1e3, duration / 1e3))
        time[name] += duration
    most = sorted(time, key=lambda name: -time[name])[:8]
    names = [name for name in time if name in most]  # as they came
    alt = f"Timeline of the GPU: {len(table.rows)} kernels and copies in {len(names)} rows"
    fig, axes = chart(8.5, 0.9 + 0.32 * len(names), alt=alt)
    for place, name in enumerate(names):
        axes.broken_barh(spans[name], (place - 0.35, 0.7), color=ACCENT)
    shown = [name[:40] for name in names]
    axes.set_yticks(range(len(names)), shown, fontsize=8, color=INK)
    axes.invert_yaxis()
    axes.set_xlabel("µs since the first one")
    axes.spines[["top", "right"]].set_visible(False)
    return fig


def bars(table: Table, *columns: str) -> "Picture":
    """A picture of percentages in an ncu report: a group of bars for each kernel."""
    rows = table.rows
    words = []
    for row in rows:
        said = ", ".join(f"{column} {row[column]}" for column in columns)
        words.append(f"{row['kernel']}: {said}")
    pitch = len(columns) + 1  # from group to group, in bars
    fig, axes = chart(7.0, 0.8 + 0.22 * len(rows) * pitch, alt="; ".join(words))
    first = pitch * np.arange(len(rows))
    for n, column in enumerate(columns):
        shares = [number(row[column]) for row in rows]
        drawn = axes.barh(first + n, shares, color=BLOCK_COLOURS[n], label=column)
        axes.bar_label(drawn, [row[column] for row in rows], padding=3, fontsize=8.5)
    middle = (len(columns) - 1) / 2
    axes.set_yticks(first + middle, [row["kernel"] for row in rows])
    axes.set(xlim=(0, 112), xlabel="% of what the GPU can do")
    axes.invert_yaxis()
    axes.legend(frameon=False, fontsize=8.5)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
