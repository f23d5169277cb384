"""Runs the tests beside this file and reports each as it ends, one JSON object per line.

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

# Requirements of some tests besides Jupyter's clients: modules, or full paths of programs.
NEEDS = {
    "test_page.": ["notebook", "selenium", "/usr/bin/chromium", "/usr/bin/chromedriver"],
    "test_clients.ConsoleTest.": ["jupyter_console"],
}


def missing_requirement(test):
    """Returns the first missing requirement of the test, or None."""
    for prefix, needs in NEEDS.items():
        for need in needs if test.startswith(prefix) else []:
            available = os.access(need, os.X_OK) if need[0] == "/" else importlib.util.find_spec(need)
            if not available:
                return need
    return None


def each(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from each(item)
        else:
            yield item


class Reporter(unittest.TestResult):
    """Reports the outcome of every test, with its output if it failed."""

    def __init__(self, report):
        super().__init__()
        self.report = report
        self.class_failures = []
        self.reported = set()

    def startTest(self, test):
        super().startTest(test)
        self.problems = []
        self.began = time.monotonic()
        self.printed = io.StringIO()
        sys.stdout = sys.stderr = self.printed

    def stopTest(self, test):
        super().stopTest(test)
        if self.problems and hasattr(test, "end_kernel"):
            # No later test gets a kernel that a failed one has used.
            test.end_kernel()
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        self.reported.add(test.id())
        text = "\n".join(self.problems + [self.printed.getvalue()]) if self.problems else ""
        seconds = round(time.monotonic() - self.began, 3)
        self.report({"test": test.id(), "passed": not self.problems, "text": text, "seconds": seconds})

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
    def report(event):
        sys.__stdout__.write(json.dumps(event) + "\n")
        sys.__stdout__.flush()

    try:
        import jupyter_client  # noqa: F401
        import nbclient  # noqa: F401
        import nbconvert  # noqa: F401
    except ImportError as e:
        report({"missing": str(e)})
        return
    sys.path.insert(0, HERE)
    import kernels

    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(names) if names else loader.discover(HERE)
    tests = [test.id() for test in each(suite)]
    report({"tests": tests})
    missing = {test: missing_requirement(test) for test in tests}
    for test in tests:
        if missing[test]:
            report({"test": test, "missing": missing[test]})
    tests = [test for test in tests if not missing[test]]
    result = Reporter(report)
    unittest.TestSuite(test for test in each(suite) if not missing[test.id()]).run(result)
    kernels.KernelCase.end_kernels()
    for test in tests:
        if test not in result.reported:
            reasons = [f for f in result.class_failures if test.rsplit(".", 1)[0] in f]
            report({"test": test, "passed": False, "text": "\n".join(["did not run"] + reasons)})


if __name__ == "__main__":
    main(sys.argv[1:])
