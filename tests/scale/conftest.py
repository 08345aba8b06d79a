"""A cluster of two processes and a model, for the tests that need them."""

import pytest

from skyfill.model import save_model, train
from skyfill.scale.workers import open_client
from tests.stars import make_table


@pytest.fixture(scope="module")
def client():
    with open_client("local", n_workers=2) as client:
        yield client


@pytest.fixture(scope="module")
def model_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.skyfill"
    save_model(train(make_table(400), ["V", "I"], n_components=2, n_fits=1)[0], path)
    return path
