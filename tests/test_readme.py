"""The README says what is there: its chapter table, its links, its commands."""

import re

from utils.files import ROOT

README = (ROOT / "README.md").read_text()


def test_links_and_pictures_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if "://" not in target:
            assert (ROOT / target).exists(), target


def test_its_own_pictures_exist_are_small_and_described():
    sources = re.findall(r"src(?:set)?=\"(assets/[^\"]+)\"", README)
    sources += re.findall(r"!\[[^\]]+\]\((assets/[^)]+)\)", README)
    assert {"assets/race.svg", "assets/race-dark.svg", "assets/readme.gif"} == set(sources)
    for source in sources:
        assert 0 < (ROOT / source).stat().st_size < 1_500_000, source
    assert all("alt=" in image for image in re.findall(r"<img [^>]*>", README))


def test_result_and_commands_stand_within_one_screen():
    first = README.splitlines()[:30]
    for words in ("times faster", "assets/race.svg", "make lab", "assets/readme.gif"):
        assert any(words in line for line in first), words


def test_commands_are_verbs_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    for verb in set(re.findall(r"make (lab|test|record)", README)):
        assert re.search(rf"^{verb}:", makefile, re.M), verb


def test_folders_are_there():
    block = re.search(r"## How it is made\n\n```\n(.*?)```", README, re.S).group(1)
    for folder in re.findall(r"^(\w+)/", block, re.M):
        assert (ROOT / folder).is_dir(), folder
