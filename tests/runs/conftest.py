from tests.runner.conftest import clients  # noqa: F401  # the fixture
