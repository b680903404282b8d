"""Hours of others' tests: with --full alone."""


def pytest_ignore_collect(collection_path, config):
    return True if collection_path.name == "test_foreign.py" and not config.getoption(
        "--full") else None
