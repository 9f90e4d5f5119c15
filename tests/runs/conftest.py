from tests.running.conftest import clients  # noqa: F401  # the fixture
