"""One line for each check: what xtask counts."""

import sys
import time
import traceback

from kubernetes import client

FAILED = []


def check(name, action):
    """Runs one check; what it returns is for the next one, `None` when it failed."""
    try:
        result = action()
    except Exception as error:  # Whatever goes wrong is a failure of this check alone.
        FAILED.append(name)
        why = f"{error}".strip() or repr(error)
        where = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{why} ({type(error).__name__} at line {where.lineno} of {where.name})"
        print(f"FAIL\t{name}\t{why!r}", flush=True)
        return None
    print(f"ok\t{name}", flush=True)
    return result


def same(got, want):
    """Fails unless both are equal."""
    if got != want:
        raise AssertionError(f"{got!r} instead of {want!r}")


def has(text, part):
    """Fails unless the text has the part."""
    if part not in str(text):
        raise AssertionError(f"no {part!r} in {text!r}")


def refused(code, part, action):
    """Fails unless the server refuses with this code and these words."""
    try:
        action()
    except client.ApiException as error:
        same(error.status, code)
        has(error.body, part)
        return error
    raise AssertionError(f"it was not refused; {code} was expected")


def until(action, seconds=30):
    """Waits until the action returns something; failures count only at the end."""
    deadline = time.monotonic() + seconds
    while True:
        problem = None
        try:
            result = action()
            if result:
                return result
        except (AssertionError, client.ApiException) as error:
            problem = error
        if time.monotonic() > deadline:
            raise problem or AssertionError(f"not within {seconds} s: it is {result!r}")
        time.sleep(0.1)


def end():
    """The last line, without which nobody knows whether there would have been more."""
    print("done", flush=True)
    sys.exit(1 if FAILED else 0)
