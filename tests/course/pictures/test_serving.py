"""The picture of a scheduler's steps shows what its timeline says."""

from course.kernels.language_model.serving.timeline import timeline
from course.pictures import serving


def test_a_step_in_words():
    told = timeline([(0, 6, 2), (1, 2, 3)], blocks=4, budget=4, places=2)
    words = serving.said(told, 1)
    assert words.startswith("step 1: 4 tokens computed, 2 written so far, 0 wait; 2 of 4 blocks")
    assert "A prompt (2 tokens), B prompt (2 tokens). Blocks: A B - -" in words


def test_a_step_as_a_picture():
    """Cells so far, in their colours; whose the blocks are; a mark where the first token came."""
    told = timeline()
    step = next(
        number
        for number, moment in enumerate(told.moments)
        if any(len(owners) > 1 for owners in moment.owners) and "waits" in moment.doing.values()
    )
    drawn = serving.steps(told, step)
    page = drawn.svg()
    so_far = [doing for moment in told.moments[: step + 1] for doing in moment.doing.values()]
    for doing, colour in serving.COLOURS.items():
        shared = sum(len(owners) > 1 for owners in told.moments[step].owners)
        others = 1 + (shared if colour == serving.YELLOW else 0)  # the legend, and shared blocks
        assert page.count(f"fill:{colour}") == so_far.count(doing) + others
    for owners in filter(None, told.moments[step].owners):
        assert f">{owners}</text>" in page
    assert drawn.alt == serving.said(told, step)


def test_every_step_can_be_drawn():
    told = timeline()
    alts = [serving.steps(told, step).alt for step in range(len(told.moments))]
    assert len(set(alts)) == len(alts)
