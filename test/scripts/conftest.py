import pytest

from support.perftest import Perftest


@pytest.fixture
def perftest(run):
    return Perftest(run)
