"""What the tests of the package share."""

import shardwright as sw


def refused(words, function, *args, **options):
    """Assert that a call is refused in one line that has these words."""
    try:
        function(*args, **options)
    except sw.ShardwrightError as error:
        assert words in str(error) and len(str(error).splitlines()) == 1, error
        return
    raise AssertionError(f"not refused: {words}")
