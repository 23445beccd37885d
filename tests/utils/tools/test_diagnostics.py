"""Compiler output is shown in the learner's own lines."""

from utils.tools.diagnostics import LearnerError, annotate, excerpt, unstyled

SOURCE = "int main()\n{\n    int x = 1\n    return x;\n}\n"


def test_gcc_and_nvcc_errors_show_the_line(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(SOURCE)
    for log in (
        f"{path}:3:14: error: expected ';' before 'return'",
        'k.cu(3): error: expected a ";"\n      return x;\n',
    ):
        text = annotate(log, {"k.cu": path})
        assert "line 3: expected" in text
        assert ">    3 |     int x = 1" in text
    assert "             ^" in annotate(f"{path}:3:14: error: x", {})


def test_each_error_once_and_no_warnings(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(SOURCE)
    text = annotate(f"{path}(1): warning #1: unused\n" + f"{path}(3): error: bad\n" * 2, {})
    assert text.count("bad") == 1
    assert "unused" not in text


def test_a_flood_of_errors_is_cut(tmp_path):
    text = annotate("\n".join(f"k.cu:{n}:1: error: bad {n}" for n in range(1, 200)), {})
    assert "bad 1\n" in text and "bad 6" not in text
    assert text.endswith("... and 194 more errors: mend the first and compile again")


def test_a_log_without_errors_is_kept():
    assert annotate("nvcc fatal   : Unknown option\n") == "nvcc fatal   : Unknown option"


def test_missing_file_and_last_line(tmp_path):
    assert excerpt(tmp_path / "none.cu", 3) == ""
    path = tmp_path / "k.cu"
    path.write_text("a\nb")
    assert excerpt(path, 2).splitlines()[-1] == "  >    2 | b"


def test_learner_errors_have_no_traceback():
    assert LearnerError("what and where")._render_traceback_() == ["LearnerError: what and where"]


def test_a_terminals_style_goes():
    assert unstyled("\x1b[1mUntyped\x1b[0m \x1b[31;4mname\x1b[m") == "Untyped name"
