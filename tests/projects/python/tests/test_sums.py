import os
import tempfile

import pytest

from sums import sums


def test_of_nothing_is_zero():
    assert sums() == 0


class TestOfTwo:
    @pytest.mark.parametrize("whole", [3, 5])
    def test_whole(self, whole):
        assert sums(1, 2) == whole


@pytest.mark.skip(reason="not on this machine")
def test_skipped():
    assert False


@pytest.mark.slow
def test_passes_the_second_time():
    mark = os.path.join(tempfile.gettempdir(), "luck")
    again = os.path.exists(mark)
    open(mark, "w").close()
    assert again, "the first time fails"
