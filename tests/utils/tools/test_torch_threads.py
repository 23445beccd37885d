"""Work with one thread, and as many as before after it."""

import pytest
import torch

from utils.tools.torch_threads import one_thread


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_afterwards_there_are_as_many_threads_as_before(two_threads):
    with pytest.raises(ValueError), one_thread():
        assert torch.get_num_threads() == 1
        raise ValueError
    assert torch.get_num_threads() == 2
