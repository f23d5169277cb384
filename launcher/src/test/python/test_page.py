"""Drives Jupyter Notebook in a browser by its buttons, as a user does.

BRAID_SCREENSHOTS=DIRECTORY saves screenshots.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from kernels import ARGV, TIMEOUT_S, children

NOTEBOOKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[".."] * 4, "notebooks")
TUNING = "02_tune_split_count.ipynb"
TOKEN = "braid"
# Time limit of a measuring cell on a busy machine.
PATIENCE_S = 100


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class PageTest(unittest.TestCase):
    RANKS = 2

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix="braid-page")
        cls.addClassCleanup(shutil.rmtree, cls.home, ignore_errors=True)
        cls.write_notebooks()
        cls.port = free_port()
        cls.log = open(os.path.join(cls.home, "lab.log"), "w+")
        cls.addClassCleanup(cls.log.close)
        command = ARGV[: ARGV.index("kernel")] + ["lab", "-n", str(cls.RANKS)]
        command += ["--backend", "host", "--notebooks", os.path.join(cls.home, "notebooks"), "--"]
        command += ["--no-browser", "--allow-root", "--port", str(cls.port)]
        command += [f"--NotebookApp.token={TOKEN}"]
        cls.lab = subprocess.Popen(command, stdout=cls.log, stderr=cls.log, cwd=cls.home)
        cls.addClassCleanup(cls.end_lab)
        cls.await_lab()
        cls.browser = cls.open_browser()
        cls.addClassCleanup(lambda: cls.browser.quit())

    @classmethod
    def write_notebooks(cls):
        """Writes the tuning notebook with less to measure, and empty notebooks: each file has its own kernel."""
        folder = os.path.join(cls.home, "notebooks")
        os.makedirs(folder)
        with open(os.path.join(NOTEBOOKS, TUNING)) as f:
            notebook = json.load(f)
        sources = ["".join(cell["source"]) for cell in notebook["cells"]]
        shorter = [
            s.replace("int seconds = 10;", "int seconds = 3;")
            .replace("4, 8, 16, 32, 64}", "4}")
            .replace("8192 : 3840;", "8192 : 768;")
            for s in sources
        ]
        changed = "\n".join(shorter)
        for part in ("int seconds = 3;", "{1, 2, 4}", ": 768;"):
            assert part in changed, "the parameters of " + TUNING + " have changed"
        for cell, source in zip(notebook["cells"], shorter):
            cell["source"] = source
        with open(os.path.join(folder, TUNING), "w") as f:
            json.dump(notebook, f)
        empty = {key: notebook[key] for key in ("metadata", "nbformat", "nbformat_minor")}
        for name in ("stopped.ipynb", "restarted.ipynb"):
            with open(os.path.join(folder, name), "w") as f:
                json.dump({"cells": [], **empty}, f)
        # Without a language of its own, as Jupyter makes a new notebook: the page keeps a mode of the same name.
        new = {**empty, "metadata": {"kernelspec": notebook["metadata"]["kernelspec"]}}
        with open(os.path.join(folder, "colored.ipynb"), "w") as f:
            json.dump({"cells": [], **new}, f)

    @classmethod
    def said(cls):
        cls.log.flush()
        with open(cls.log.name) as f:
            return f.read()[-4000:]

    @classmethod
    def await_lab(cls):
        end = time.monotonic() + 2 * TIMEOUT_S
        while time.monotonic() < end and cls.lab.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{cls.port}/api", timeout=5):
                    return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.1)
        raise AssertionError("braid lab did not begin to serve:\n" + cls.said())

    @classmethod
    def end_lab(cls):
        below = children(cls.lab.pid)
        cls.lab.terminate()
        try:
            cls.lab.wait(TIMEOUT_S)
        finally:
            for pid in below:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    @staticmethod
    def open_browser():
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service

        options = Options()
        options.binary_location = "/usr/bin/chromium"
        for argument in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1200,1100",
        ):
            options.add_argument(argument)
        browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        browser.set_page_load_timeout(TIMEOUT_S)
        return browser

    def tearDown(self):
        print("braid lab said:\n" + self.said())

    def js(self, code):
        return self.browser.execute_script(code)

    def until(self, what, condition, seconds=TIMEOUT_S):
        end = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > end:
                self.picture("failed")
                self.fail(f"{what} did not come within {seconds} s; the page: {self.page()[-2000:]}")
            time.sleep(0.1)

    def page(self):
        """Returns the notebook's text, or the address and text of another page."""
        return self.js(
            "let n = document.getElementById('notebook-container');"
            " return n ? n.innerText : location.href + ': ' + document.documentElement.outerHTML"
        )

    def picture(self, name):
        folder = os.environ.get("BRAID_SCREENSHOTS")
        if folder:
            self.browser.save_screenshot(os.path.join(folder, name + ".png"))

    def whole_picture(self, name):
        height = self.js("return document.getElementById('notebook-container').scrollHeight")
        self.browser.set_window_size(1200, height + 300)
        self.js("document.getElementById('site').scrollTop = 0")
        self.picture(name)
        self.browser.set_window_size(1200, 1100)

    def open(self, notebook):
        self.navigate(f"http://127.0.0.1:{self.port}/notebooks/{notebook}?token={TOKEN}")
        self.until(
            "a kernel",
            lambda: self.js(
                "return !!(window.Jupyter && Jupyter.notebook && Jupyter.notebook.kernel"
                " && Jupyter.notebook.kernel.is_connected())"
            ),
            2 * TIMEOUT_S,
        )
        self.addCleanup(self.leave)

    def navigate(self, address):
        """Navigates again if a browser that has just started shows another page and sent no request, or has ended."""
        from selenium.common.exceptions import InvalidSessionIdException, WebDriverException

        for attempt in range(3):
            try:
                self.browser.get(address)
                if self.js("return !!document.getElementById('notebook-container')"):
                    return
                shown = self.page()[:2000]
            except InvalidSessionIdException as e:
                shown = f"the browser has ended: {e}"
                try:
                    self.browser.quit()
                except WebDriverException:
                    pass
                type(self).browser = self.open_browser()
            print(f"attempt {attempt + 1} of {address}: {shown}")
            time.sleep(1)
        self.fail(f"the browser shows no notebook; {shown}")

    def leave(self):
        self.js("Jupyter.notebook.session.delete(); Jupyter.notebook.set_dirty(false)")

    def click(self, selector):
        self.browser.find_element("css selector", selector).click()

    def menu(self, menu, entry):
        self.click("#" + menu)
        self.until(entry, lambda: self.browser.find_element("id", entry).is_displayed())
        self.click("#" + entry)

    def add_cell(self, code):
        """Adds a cell at the end and runs it by its button."""
        self.js(
            "let n = Jupyter.notebook; let c = n.insert_cell_at_bottom('code');"
            f"c.set_text({json.dumps(code)}); n.select(n.ncells() - 1); n.focus_cell();"
        )
        self.click("button[data-jupyter-action='jupyter-notebook:run-cell-and-select-next']")

    def output(self, index):
        """Returns the output of a code cell as text."""
        return self.js(
            "let c = Jupyter.notebook.get_cells().filter(c => c.cell_type == 'code' && c.get_text())"
            f".at({index}); return c && c.output_area.element[0].innerText"
        ) or ""

    def unfinished(self):
        return self.js(
            "return Jupyter.notebook.get_cells().filter(c => c.cell_type == 'code'"
            " && c.get_text() && !(c.input_prompt_number > 0)).length"
        )

    def test_a_notebook_runs_and_shows_table_chart_and_timeline(self):
        self.open(TUNING)
        self.assertIn("Braid (2 ranks)", self.browser.page_source)
        self.menu("celllink", "run_all_cells")
        self.until("the progress bar", lambda: "tuning" in self.output(3), PATIENCE_S)
        self.picture("running")
        self.until("the end of all cells", lambda: self.unfinished() == 0, 2 * PATIENCE_S)
        self.whole_picture("notebook")
        self.assertNotIn("Traceback", self.page())
        tables = self.js("return document.querySelectorAll('.output_area table').length")
        charts = self.js(
            "return [...document.querySelectorAll('.output_area img, .output_area svg')]"
            ".filter(e => e.getBoundingClientRect().width > 400).length"
        )
        self.assertGreaterEqual(tables, 2)
        self.assertGreaterEqual(charts, 2)
        self.assertIn("vs unfused", self.output(3))
        self.assertIn("exposed communication", self.output(5))
        self.assertIn("earlier", self.output(7))

    def test_the_stop_button_stops_every_rank_and_leaves_them_usable(self):
        self.open("stopped.ipynb")
        self.add_cell("int kept = world.rank() + 1;\nkept")
        self.until("a result", lambda: "1" in self.output(-1), 2 * TIMEOUT_S)
        self.add_cell('System.out.println("begun");\nwhile (true) { }')
        self.until("the loop", lambda: "begun" in self.output(-1))
        self.click("button[data-jupyter-action='jupyter-notebook:interrupt-kernel']")
        self.until("the interrupt", lambda: "was interrupted" in self.output(-1))
        self.picture("interrupted")
        self.add_cell("world.gather(kept)")
        self.until("the next result", lambda: "1, 2" in self.output(-1))

    def test_words_of_new_java_are_colored(self):
        self.open("colored.ipynb")
        self.add_cell("record Pair(int a) {}\nvar pair = new Pair(1);\npair.a() + 1")
        self.until("a result", lambda: "2" in self.output(-1), 2 * TIMEOUT_S)
        colored = self.js(
            "let c = Jupyter.notebook.get_cells().filter(c => c.get_text()).at(-1);"
            "return [...c.element[0].querySelectorAll('.cm-keyword, .cm-builtin, .cm-type')]"
            ".map(e => e.innerText)"
        )
        self.assertEqual(["record", "int", "var", "new"], colored)

    def test_the_restart_button_brings_new_ranks_with_nothing_declared(self):
        self.open("restarted.ipynb")
        self.add_cell("long old = 41;\nold + 1")
        self.until("a result", lambda: "42" in self.output(-1), 2 * TIMEOUT_S)
        self.click("button[data-jupyter-action='jupyter-notebook:confirm-restart-kernel']")
        self.until(
            "the question",
            lambda: self.browser.find_elements("css selector", ".modal.in .btn-danger"),
        )
        # The dialogue slides in; a click outside closes it.
        self.until(
            "the end of its way",
            lambda: self.js(
                "let m = document.querySelector('.modal.in');"
                " return getComputedStyle(m).opacity == 1"
                " && new DOMMatrix(getComputedStyle(m.querySelector('.modal-dialog')).transform).isIdentity"
            ),
        )
        self.click(".modal.in .btn-danger")
        self.until(
            "a new kernel",
            lambda: self.js(
                "return Jupyter.notebook.kernel.is_connected()"
                " && !document.querySelector('.modal.in')"
            ),
            2 * TIMEOUT_S,
        )
        self.add_cell("old")
        self.until("what is wrong", lambda: "cannot find symbol" in self.output(-1), 2 * TIMEOUT_S)
        self.picture("restarted")
        self.add_cell("world.size()")
        self.until("a result of the new ranks", lambda: "2" in self.output(-1))
