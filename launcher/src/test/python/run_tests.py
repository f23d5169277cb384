"""Runs the tests beside this file and tells of each as it ends, one JSON object a line.

The first line lists the tests. JUnit reads these lines (KernelProtocolTest); to run tests by hand:
    BRAID_KERNEL_ARGV='["java", "-cp", "…", "braid.launcher.cli.Braid", "kernel", "start"]' \
        /usr/bin/python3 run_tests.py [NAME…]
"""

import importlib.util
import io
import json
import os
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))

# What some tests need besides Jupyter's clients: modules, or programs by their full names.
NEEDS = {
    "test_page.": ["notebook", "selenium", "/usr/bin/chromium", "/usr/bin/chromedriver"],
    "test_clients.ConsoleTest.": ["jupyter_console"],
}


def lacks(test):
    """The first thing that the test needs and that is not here, or None."""
    for prefix, needs in NEEDS.items():
        for need in needs if test.startswith(prefix) else []:
            there = os.access(need, os.X_OK) if need[0] == "/" else importlib.util.find_spec(need)
            if not there:
                return need
    return None


def each(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from each(item)
        else:
            yield item


class Telling(unittest.TestResult):
    """Tells the outcome of every test, with what it printed where it did not pass."""

    def __init__(self, tell):
        super().__init__()
        self.tell = tell
        self.class_failures = []
        self.told = set()

    def startTest(self, test):
        super().startTest(test)
        self.problems = []
        self.began = time.monotonic()
        self.printed = io.StringIO()
        sys.stdout = sys.stderr = self.printed

    def stopTest(self, test):
        super().stopTest(test)
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        self.told.add(test.id())
        text = "\n".join(self.problems + [self.printed.getvalue()]) if self.problems else ""
        seconds = round(time.monotonic() - self.began, 3)
        self.tell({"test": test.id(), "passed": not self.problems, "text": text, "seconds": seconds})

    def note(self, test, text):
        if isinstance(test, unittest.TestCase) or hasattr(test, "test_case"):
            self.problems.append(text)
        else:
            self.class_failures.append(f"{test}: {text}")

    def addError(self, test, err):
        self.note(test, self._exc_info_to_string(err, test))

    def addFailure(self, test, err):
        self.note(test, self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note(subtest, f"{subtest}\n" + self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        self.note(test, f"skipped, which counts as failed: {reason}")

    def addUnexpectedSuccess(self, test):
        self.note(test, "passed, though marked as expected to fail")


def main(names):
    def tell(event):
        sys.__stdout__.write(json.dumps(event) + "\n")
        sys.__stdout__.flush()

    try:
        import jupyter_client  # noqa: F401
        import nbclient  # noqa: F401
        import nbconvert  # noqa: F401
    except ImportError as e:
        tell({"missing": str(e)})
        return
    sys.path.insert(0, HERE)
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(names) if names else loader.discover(HERE)
    tests = [test.id() for test in each(suite)]
    tell({"tests": tests})
    missing = {test: lacks(test) for test in tests}
    for test in tests:
        if missing[test]:
            tell({"test": test, "missing": missing[test]})
    tests = [test for test in tests if not missing[test]]
    result = Telling(tell)
    unittest.TestSuite(test for test in each(suite) if not missing[test.id()]).run(result)
    for test in tests:
        if test not in result.told:
            reasons = [f for f in result.class_failures if test.rsplit(".", 1)[0] in f]
            tell({"test": test, "passed": False, "text": "\n".join(["did not run"] + reasons)})


if __name__ == "__main__":
    main(sys.argv[1:])
