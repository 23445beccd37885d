"""What may not be published is not: the placeholder, another version, chapters without a GPU."""

import http.server
import subprocess
import threading

import nbformat
import pytest

from course.publish import release


def test_the_placeholder_is_refused(monkeypatch):
    monkeypatch.setattr(
        release, "repository", lambda: f"https://github.com/{release.PLACEHOLDER}/course"
    )
    assert "make address" in release.address_is_real()[0]
    monkeypatch.setattr(release, "repository", lambda: "https://github.com/ada/cuda-course")
    assert release.address_is_real() == []


def test_this_tree_is_of_one_version():
    assert release.versions_agree() == []


def test_another_version_is_seen(monkeypatch):
    monkeypatch.setattr("course.publish.frame.tag", lambda: "v99.0.0")
    monkeypatch.setattr(release, "tag", lambda: "v99.0.0")
    found = release.versions_agree()
    assert len(found) == len(release.notebooks()) + 1, "every notebook and the README"
    assert all("make address" in each for each in found)


def test_a_pin_whose_files_are_of_another_version_is_seen(tmp_path, monkeypatch):
    for name in {*release.install.LOCKS.values(), *release.install.CONSTRAINTS.values()}:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(
            "rich==1.0 \\\n    --hash=sha256:00\n" if "/" in name else "rich==1.0\n"
        )
    monkeypatch.setattr(release, "ROOT", tmp_path)
    assert release.pins_agree() == []
    (tmp_path / "constraints.txt").write_text("rich==2.0\n")
    assert ["rich" in each for each in release.pins_agree()] == [True, True], "cpu and cuda13"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A git repository with one commit in the project's place."""

    def git(*words):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "first")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "tag", lambda: "v1.0.0")
    return git


def test_the_tag_is_this_commit_or_not_made_yet(repository, tmp_path):
    assert release.tag_is_here() == []
    repository("tag", "v1.0.0")
    assert release.tag_is_here() == []
    repository("commit", "-q", "--allow-empty", "-m", "second")
    assert "another commit" in release.tag_is_here()[0]
    (tmp_path / "new").touch()
    assert "not committed" in release.tag_is_here()[0]


@pytest.mark.parametrize(
    "line, problems", [("NVIDIA T4 · 40 SMs · CC 7.5", 0), ("no GPU: CPU engines", 1), ("", 1)]
)
def test_a_chapter_without_a_gpus_outputs_is_seen(tmp_path, monkeypatch, line, problems):
    cell = nbformat.v4.new_code_cell("machine()", metadata={"tags": ["setup"]})
    cell.outputs = [nbformat.v4.new_output("stream", text=line)]
    path = tmp_path / "05.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    monkeypatch.setattr(release, "notebooks", lambda: [path])
    assert len(release.results_are_recorded()) == problems


def test_numbers_of_the_gpu_that_is_shown_are_missed(monkeypatch):
    monkeypatch.setattr(release, "notebooks", lambda: [])
    assert release.results_are_recorded() == []
    monkeypatch.setattr(release, "RECORDED_ON", "NVIDIA B200")
    assert release.results_are_recorded() == [
        "assets/results holds no numbers of the NVIDIA B200: `make record`"
    ]


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response({"/there": 200, "/gone": 404, "/shy": 403}[self.path])
        self.end_headers()

    def log_message(self, *_):
        pass


def test_dead_links_are_named_and_shy_ones_are_not(tmp_path, monkeypatch):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = f"http://127.0.0.1:{server.server_port}"
    links = [f"[x]({home}/{page}#part)." for page in ("there", "gone", "shy")]
    (tmp_path / "README.md").write_text("\n".join(links))
    (tmp_path / "course").mkdir()
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "notebooks", lambda: [])
    monkeypatch.setattr(release, "NOT_PAGES", ())
    try:
        assert release.links_are_alive() == [f"README.md links to {home}/gone: 404"]
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("answer", ["no such place", "no answer"])
def test_without_a_network_one_line_says_so(monkeypatch, answer):
    monkeypatch.setattr(release, "linked", lambda: {"https://a.org": "a.md", "https://b.org": "b"})
    monkeypatch.setattr(release, "status", lambda url: answer)
    (said,) = release.links_are_alive()
    assert said == "none of the 2 pages linked to answers: is there a network?"


def test_the_command_says_no_in_so_many_words(monkeypatch, capsys):
    monkeypatch.setattr(release, "CHECKS", {"one": lambda: ["x is wrong"], "two": lambda: []})
    assert release.main(["--offline"]) == 1
    said = capsys.readouterr().out
    assert "✗ one\n    x is wrong\n✓ two" in said and "No: 1 things" in said
