"""Cases of a test in Python: a line each, as run.py counts them."""
import os

# A test that means a GPU names it: without this, --device auto would look for one in every run.
os.environ.setdefault("BEZEL_DEVICE", "cpu")
failures = 0


def need(holds, reason):
    if not holds:
        raise AssertionError(reason)


def same(got, want, what):
    need(got == want, f"{what} is {got!r} instead of {want!r}")


def case(name, run, *args):
    global failures
    try:
        run(*args)
        print("ok " + name, flush=True)
    except Exception as e:  # a crash of the test is a failure of the case, not of the rest
        failures += 1
        print(f"FAIL {name} {type(e).__name__}: {str(e)[:600]}", flush=True)


def finish():
    """the code to exit with"""
    return failures != 0
