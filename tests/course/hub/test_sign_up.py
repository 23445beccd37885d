"""Signing up at a real Hub: in at once with --open, else by an instructor. At night, as root."""

import dataclasses
import tempfile
from pathlib import Path

import pytest

from course.hub import rehearsal
from course.hub.simulated import Failed, Visitor
from tests.course.hub.test_class import pytestmark  # noqa: F401  the same needs


@pytest.mark.parametrize("is_open", [True, False])
def test_who_signs_up_is_let_in_at_once_or_by_an_instructor(is_open):
    with tempfile.TemporaryDirectory(prefix="cuda-course-open-") as folder:
        Path(folder).chmod(0o755)
        hub = rehearsal.Hub(Path(folder))
        hub.settings = dataclasses.replace(hub.settings, open=is_open)
        try:
            hub.start()
            ann = Visitor(hub.settings.address, "ann", "of-no-use-77")
            ann.sign_up()
            if not is_open:
                with pytest.raises(Failed):
                    ann.log_in()
                assert ann.get("/hub/authorize/ann").status_code in (403, 200)
                with pytest.raises(Failed):  # whatever she asked for
                    ann.log_in()
                teacher = Visitor(hub.settings.address, rehearsal.TEACHER, hub.password)
                teacher.log_in()
                teacher.get("/hub/authorize/ann")
            ann.log_in()
        finally:
            hub.end()
