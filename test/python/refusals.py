"""What a call refuses, for the tests."""


def refused(kind, call):
    """The sentence of the error. AssertionError: nothing was refused."""
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError("nothing was refused")
