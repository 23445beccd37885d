"""%nvcc: a cell is green only if its program compiled, ran and returned 0."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.compiling import needs_nvcc
from tests.processes import completed
from utils import engine
from utils.tools import nvcc, process

HELLO = (
    '#include <cstdio>\n__global__ void k() { printf("hello from %d\\n", threadIdx.x); }\n'
    "int main() { k<<<1, 2>>>(); cudaDeviceSynchronize(); return 0; }\n"
)


@pytest.fixture
def cu(tmp_path, monkeypatch):
    """Write build/NAME.cu in a fresh folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "build").mkdir()

    def write(text, name="prog"):
        path = Path("build") / f"{name}.cu"
        path.write_text(text)
        return str(path)

    return write


def refused(says, *words):
    """%nvcc with these words raises an NvccError that says so; all that it says."""
    with pytest.raises(nvcc.NvccError, match=says) as error:
        nvcc.main(words)
    return str(error.value)


def main_returning(status, body=""):
    return "#include <cstdio>\nint main() { " + body + f" return {status}; }}\n"


def test_words_are_taken_apart(cu):
    source = cu(HELLO)
    words = "-O3 -DN=4 --timeout 5 --check --seed 7 -o out --run -x --check".split()
    request = nvcc.parse([source, *words])
    assert request == nvcc.Request(
        Path(source),
        ["-O3", "-DN=4"],
        Path("out"),
        check=True,
        seed=7,
        timeout=5.0,
        run=True,
        arguments=["-x", "--check"],
    )


def test_cpu_may_stand_behind_run(cu):
    request = nvcc.parse([cu(HELLO), "--run", "--cpu", "7", "--check"])
    assert (request.cpu, request.check, request.arguments) == (True, False, ["7", "--check"])


@pytest.mark.parametrize(
    "words, text",
    [
        (["--run"], "name one source file"),
        (["a.cu", "b.cu"], "not 2: a.cu, b.cu"),
        (["missing.cu"], "%%writefile missing.cu"),
        (["x.cu", "--timeout"], "--timeout needs a value"),
        (["x.cu", "--timeout", "soon"], "takes a number"),
    ],
)
def test_calls_that_make_no_sense(words, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(text, *words)


def test_hello(cu, capfd):
    nvcc.main([cu(HELLO), "--run"])
    out = capfd.readouterr().out
    assert "hello from 0\nhello from 1\n" in out
    assert out.count("$ ") >= 1


def test_says_where_it_runs(cu, capfd):
    nvcc.main([cu(HELLO), "--cpu", "--run"])
    assert "runs on the CPU" in capfd.readouterr().out


def test_the_cpu_plays_several_devices(cu, capfd):
    program = cu(
        '#include <cstdio>\nint main() { int n; cudaGetDeviceCount(&n); printf("%d GPUs\\n", n); }'
    )
    nvcc.main([program, "--devices", "3", "--run"])
    assert "3 GPUs\n" in capfd.readouterr().out


def test_arguments_reach_the_program(cu, capfd):
    program = cu(
        "#include <cstdio>\nint main(int c, char **v) { for (int i = 1; i < c; ++i) puts(v[i]); }"
    )
    nvcc.main([program, "--run", "a b", "-c"])
    assert "a b\n-c\n" in capfd.readouterr().out


def test_syntax_error_is_shown_in_its_line(cu):
    kernel = "__global__ void k(float *x)\n{\n    x[0] = 1\n}\n"
    said = refused(
        "does not compile", cu(kernel + "int main() { k<<<1, 1>>>(nullptr); }\n"), "--run"
    )
    assert ">    3 |     x[0] = 1" in said or ">    4 | }" in said


@pytest.mark.parametrize(
    "source, text",
    [
        (main_returning(3), "exit status 3"),
        ("#include <csignal>\n" + main_returning(0, "raise(SIGSEGV);"), "SIGSEGV"),
        ("#include <cstdlib>\n" + main_returning(0, "abort();"), "SIGABRT"),
    ],
)
def test_failing_programs_fail_the_cell(cu, source, text):
    refused(text, cu(source), "--run")


def test_a_program_that_never_ends_is_stopped(cu):
    source = cu("#include <unistd.h>\n" + main_returning(0, "while (true) sleep(1);"))
    refused("stopped after 1 s.*endless loop", source, "--timeout", "1", "--run")


def test_what_a_hanging_program_printed_is_seen(cu, capfd):
    """On a busy machine it may not have begun after two seconds: then it gets more."""
    body = 'printf("step %d\\n", 1); while (true) sleep(1);'
    program = cu("#include <unistd.h>\n" + main_returning(0, body))
    printed = ""
    seconds = 2
    while "step 1\n" not in printed:
        with pytest.raises(nvcc.NvccError, match=f"stopped after {seconds} s"):
            nvcc.main([program, "--timeout", str(seconds), "--run"])
        printed = capfd.readouterr().out
        seconds *= 4


def test_without_nvcc_it_says_how_to_get_it(cu, monkeypatch):
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: None)
    refused("make lab", cu(HELLO), "-ptx")


def test_old_driver_without_nvcc(cu, monkeypatch):
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: None)
    monkeypatch.setattr(nvcc, "gpu", lambda: engine.GPU("T4", (7, 5), 1, "550.1", (12, 4), "u"))
    refused("Update the driver to 580", cu(HELLO))


@pytest.mark.parametrize(
    "found, text",
    [
        (engine.GPU("A100", (8, 0), 1, "550.1", (12, 4), "u"), "newer than what driver 550.1 runs"),
        (engine.GPU("V100", (7, 0), 1, "580.1", (13, 0), "u"), "compute capability 7.0"),
    ],
)
def test_toolkit_that_does_not_fit(cu, monkeypatch, found, text):
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: "/usr/bin/nvcc")
    monkeypatch.setattr(nvcc, "nvcc_version", lambda: "13.0")
    monkeypatch.setattr(nvcc, "gpu", lambda: found)
    refused(text, cu(HELLO))


def test_no_host_compiler(cu, monkeypatch):
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: "/usr/bin/nvcc")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    refused("apt install g", cu(HELLO), "-ptx")


def test_compiles_for_this_gpu_and_never_for_the_old_default(cu, monkeypatch):
    source = Path(cu(HELLO))
    monkeypatch.setattr(nvcc, "_refuse_what_cannot_work", lambda path: None)
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: "/usr/local/bin/nvcc")
    assert "-arch=sm_90" in nvcc.nvcc_command(nvcc.Request(source), Path("x"))
    monkeypatch.setattr(engine, "gpu", lambda: engine.GPU("RTX", (8, 9), 1, "580", (13, 0), "u"))
    assert "-arch=sm_89" in nvcc.nvcc_command(nvcc.Request(source), Path("x"))
    given = nvcc.nvcc_command(
        nvcc.Request(source, ["-gencode=arch=compute_90a,code=sm_90a"]), Path("x")
    )
    assert not any(flag.startswith("-arch") for flag in given)


def test_the_same_content_is_compiled_once_wherever_it_lies(tmp_path, monkeypatch):
    compiled = []

    def compile_nothing(request, output):
        compiled.append(output)
        output.touch()

    def build_in(name, text):
        source = tmp_path / name / "x.cu"
        source.parent.mkdir()
        source.write_text(text)
        return nvcc.build_once(nvcc.Request(source), "x.so", [source])

    monkeypatch.setattr(nvcc, "_compile", compile_nothing)
    monkeypatch.setattr(nvcc.cache, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(nvcc, "nvcc_command", lambda request, to: ["nvcc", str(request.source)])
    first = build_in("here", "int x;")
    assert first.exists() and first.suffix == ".so"
    assert build_in("there", "int x;") == first
    assert build_in("elsewhere", "int y;") != first
    assert len(compiled) == 2


@needs_nvcc
def test_what_does_not_compile_is_not_kept(cu, tmp_path, monkeypatch):
    monkeypatch.setattr(nvcc.cache, "cache_folder", lambda: tmp_path / "kept")
    source = Path(cu("__global__ void k() { y = 1; }\n"))
    request = nvcc.Request(source, ["-cubin", "-arch=sm_90"])
    with pytest.raises(nvcc.NvccError, match="line 1"):
        nvcc.build_once(request, "k", [source])
    assert not list(tmp_path.glob("kept/*"))
    source.write_text("__global__ void k() { }\n")
    assert nvcc.build_once(request, "k", [source]).stat().st_size


def test_pip_toolkit_is_told_its_library_folder(tmp_path, monkeypatch):
    root = tmp_path / "nvidia" / "cu13"
    (root / "bin").mkdir(parents=True)
    (root / "lib").mkdir()
    monkeypatch.setattr(nvcc.sysconfig, "get_paths", lambda: {"purelib": str(tmp_path)})
    assert nvcc._pip_toolkit_flags(str(root / "bin" / "nvcc")) == [f"-L{root.resolve() / 'lib'}"]
    assert nvcc._pip_toolkit_flags("/usr/local/cuda/bin/nvcc") == []


@needs_nvcc
def test_real_nvcc_compiles_without_a_gpu(cu, capfd):
    source = cu(HELLO)
    nvcc.main([source, "-ptx"])
    assert ".entry" in Path(source).with_suffix(".ptx").read_text()
    assert capfd.readouterr().out.startswith("$ nvcc build/prog.cu -o build/prog.ptx -arch=sm_90")


@needs_nvcc
def test_real_nvcc_errors_show_the_line(cu):
    said = refused("line 3", cu("__global__ void k(float *x)\n{\n    y[0] = 1;\n}\n"), "-ptx")
    assert ">    3 |     y[0] = 1;" in said and 'identifier "y" is undefined' in said


def test_same_from_the_command_line(cu, tmp_path):
    def call(*words):
        return completed([sys.executable, "-m", "utils.tools.nvcc", *words], timeout=600)

    good = call(cu(HELLO), "--run")
    assert good.returncode == 0 and "hello from 1" in good.stdout
    bad = call(cu(main_returning(4), "bad"), "--run")
    assert bad.returncode == 1 and "exit status 4" in bad.stderr and "Traceback" not in bad.stderr
    assert "usage" in call("--help").stdout


@pytest.fixture(scope="module")
def shell():
    from IPython.testing.globalipapp import get_ipython, start_ipython

    return start_ipython() or get_ipython()


def test_magic_in_a_notebook(cu, shell, capfd):
    nvcc.register_magic(shell)
    shell.run_line_magic("nvcc", f"{cu(HELLO)} --run")
    assert "hello from 1" in capfd.readouterr().out
    with pytest.raises(nvcc.NvccError):
        shell.run_line_magic("nvcc", f"{cu(main_returning(1))} --run")


def test_path_with_spaces(tmp_path, monkeypatch, capfd):
    folder = tmp_path / "my course"
    folder.mkdir()
    monkeypatch.chdir(folder)
    Path("a file.cu").write_text(HELLO)
    nvcc.main(["a file.cu", "--run"])
    assert "hello from 1" in capfd.readouterr().out


def test_interrupted_program_leaves_nothing_running(cu, monkeypatch):
    calls = []

    def interrupted(command, **kwargs):
        calls.append(command)
        raise KeyboardInterrupt

    nvcc.build(nvcc.parse([cu(HELLO), "--cpu"]))
    monkeypatch.setattr(process, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        nvcc.run(Path("build/prog"), nvcc.Request(Path("build/prog.cu")))
    assert len(calls) == 1


def test_writefile_makes_its_build_folder(tmp_path, shell, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nvcc.register_magic(shell)
    shell.run_cell("1 + 1", store_history=False)
    assert not Path("build").exists()
    shell.run_cell("%%writefile build/k.cu\nint x;\n", store_history=False)
    assert Path("build/k.cu").read_text() == "int x;\n"
