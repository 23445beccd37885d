"""Which GPUs load which code, and who brings which part, as pictures."""

from course.pictures import your_gpu


def test_a_bar_covers_the_gpus_that_load_the_code():
    gpus = {"new": (9, 0), "old": (8, 0), "middle": (8, 9)}
    sheet = your_gpu.loads_map(("sm_80", "compute_89"), gpus)
    drawn = sheet.svg()
    assert drawn.index(">old<") < drawn.index(">middle<") < drawn.index(">new<")
    assert (drawn.count(">as it is<"), drawn.count(">translated<")) == (2, 2)
    assert "sm_80: old, middle; compute_89: middle, new" in sheet.alt


def test_every_place_says_who_brings_each_part():
    sheet = your_gpu.who_brings_what()
    assert all(len(whose) == len(your_gpu.PARTS) for whose in your_gpu.BROUGHT_BY.values())
    assert "Colab: Google, Google, you: set-up cell" in sheet.alt
