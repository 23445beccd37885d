"""The README says what is there: its chapter table, its links, its commands."""

import re

from utils.files import ROOT

README = (ROOT / "README.md").read_text()
SETUP = (ROOT / "course" / "setup.md").read_text()


def test_links_and_pictures_exist():
    for folder, text in {ROOT: README, ROOT / "course": SETUP}.items():
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            if "://" not in target:
                assert (folder / target).exists(), target


def test_its_own_pictures_exist_are_small_and_described():
    sources = re.findall(r"src(?:set)?=\"(assets/[^\"]+)\"", README)
    sources += re.findall(r"!\[[^\]]+\]\((assets/[^)]+)\)", README)
    stills = {"assets/race.svg", "assets/race-dark.svg", "assets/check.png"}
    assert stills | {"assets/readme.gif"} == set(sources)
    for source in sources:
        assert 0 < (ROOT / source).stat().st_size < 1_500_000, source
    assert all("alt=" in image for image in re.findall(r"<img [^>]*>", README))


def test_what_it_is_the_film_and_the_commands_come_first():
    """So does what it ends with; then its picture, the chapters, the folded records, the rest."""
    words = ("An interactive course", "times faster", "assets/readme.gif", "make lab", "race.svg")
    later = "## Chapters", "## Records", "<details>", "## What it promises", "## How it is made"
    places = [README.index(each) for each in (*words, *later)]
    assert places == sorted(places)
    assert README[: places[3]].count("\n") < 26, "the commands stand on the first screen"


def test_commands_are_verbs_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    for verb in set(re.findall(r"make (lab|test|record|update|answers)", README + SETUP)):
        assert re.search(rf"^{verb}:", makefile, re.M), verb


def test_folders_are_there():
    block = re.search(r"## How it is made\n\n```\n(.*?)```", README, re.S).group(1)
    for folder in re.findall(r"^(\w+)/", block, re.M):
        assert (ROOT / folder).is_dir(), folder
