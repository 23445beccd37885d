"""The README says what is there: its chapter table, its links, its commands."""

import re

from utils.files import ROOT

README = (ROOT / "README.md").read_text()


def test_links_and_pictures_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if "://" not in target:
            assert (ROOT / target).exists(), target


def test_commands_are_verbs_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    for verb in set(re.findall(r"make (lab|test|record)", README)):
        assert re.search(rf"^{verb}:", makefile, re.M), verb


def test_folders_are_there():
    block = re.search(r"## How it is made\n\n```\n(.*?)```", README, re.S).group(1)
    for folder in re.findall(r"^(\w+)/", block, re.M):
        assert (ROOT / folder).is_dir(), folder
