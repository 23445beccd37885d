"""The ring to practise on: ranks may do different things, and what would hang is told."""

import pytest

from course.kernels.many_gpus.practice import Link, LinkError, play

NUMBERS = [3, 5, 7, 11]


def neighbours(link):
    return (link.rank + 1) % link.ranks, (link.rank - 1) % link.ranks


def what_comes(link, mine):
    """Ranks in turn send first or receive first; what came from the rank before."""
    right, left = neighbours(link)
    arriving = [0]
    if link.rank % 2:
        link.receive(left, arriving).wait()
        link.send(right, [mine]).wait()
    else:
        link.send(right, [mine]).wait()
        link.receive(left, arriving).wait()
    return arriving[0]


def all_wait_for_their_send(link, mine):
    link.send(neighbours(link)[0], [mine]).wait()


def only_rank_0_receives(link, mine):
    right, left = neighbours(link)
    if link.rank == 0:
        link.receive(left, [0]).wait()
    link.send(right, [mine]).wait()


def changes_what_it_sends(link, mine):
    right, left = neighbours(link)
    buffer = [mine]
    departure, arrival = link.send(right, buffer), link.receive(left, [0])
    arrival.wait()
    buffer[0] += 1
    departure.wait()


def uses_a_buffer_twice(link, mine):
    right, left = neighbours(link)
    buffer = [mine]
    link.send(right, buffer)
    link.receive(left, buffer)


@pytest.mark.parametrize("rank", range(len(NUMBERS)))
def test_ranks_may_do_different_things(rank):
    assert play(what_comes, Link(rank, NUMBERS), NUMBERS[rank]) == NUMBERS[rank - 1]


@pytest.mark.parametrize(
    "function, told",
    [
        (all_wait_for_their_send, "all 4 ranks wait here until their number has gone out"),
        (only_rank_0_receives, "rank 1 until its number has gone out to rank 2"),
        (changes_what_it_sends, "after another number was put there"),
        (uses_a_buffer_twice, "may still use this buffer"),
    ],
)
def test_what_would_hang_or_change_a_message_is_told(function, told):
    with pytest.raises(LinkError, match=told):
        play(function, Link(2, NUMBERS), NUMBERS[2])
