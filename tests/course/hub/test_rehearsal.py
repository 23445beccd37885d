"""A class of three is played, at night, as root: what the Hub's end in the middle must not lose."""

from course.hub import rehearsal
from tests.course.hub.test_class import pytestmark  # noqa: F401  the same needs


def test_a_class_loses_nothing_when_its_hub_is_killed(capsys):
    """Three learners, as in `python -m course.hub.rehearsal --learners 3`."""
    status = rehearsal.main(["--learners", "3"])
    assert status == 0, capsys.readouterr().out
