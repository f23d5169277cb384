"""Runs notebooks with unchanged Jupyter programs."""

import os
import subprocess
import sys
import tempfile
import unittest

import nbformat

from kernels import TIMEOUT_S, install_kernelspec


class NbconvertTest(unittest.TestCase):
    def convert(self, *cells):
        """Runs `jupyter nbconvert --execute`; returns its process and the executed notebook."""
        install_kernelspec("braid2", 2)
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(code) for code in cells],
            metadata={"kernelspec": {"name": "braid2", "display_name": "Braid", "language": "java"}},
        )
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        source = os.path.join(folder.name, "in.ipynb")
        target = os.path.join(folder.name, "out.ipynb")
        nbformat.write(notebook, source)
        ended = subprocess.run(
            [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute"]
            + ["--output", target, source],
            capture_output=True,
            text=True,
            timeout=2 * TIMEOUT_S,
        )
        done = nbformat.read(target, as_version=4) if os.path.exists(target) else None
        return ended, done

    def test_a_notebook_runs(self):
        ended, done = self.convert(
            'int twice(int n) { return 2 * n; }\nSystem.out.println("hello");', "twice(21)"
        )
        self.assertEqual(0, ended.returncode, ended.stderr)
        self.assertEqual("hello\n", done.cells[0].outputs[0].text)
        self.assertEqual("42", done.cells[1].outputs[0].data["text/plain"])
        self.assertEqual([1, 2], [cell.execution_count for cell in done.cells])
        self.assertEqual("java", done.metadata.language_info.name)

    def test_a_notebook_that_fails_says_why(self):
        ended, _ = self.convert("1", 'throw new IllegalStateException("no luck");', "2")
        self.assertNotEqual(0, ended.returncode)
        self.assertIn("no luck", ended.stderr)


class ConsoleTest(unittest.TestCase):
    def test_the_console_runs_cells_shows_failures_and_ends_with_its_kernel(self):
        install_kernelspec("braid2", 2)
        ended = subprocess.run(
            [sys.executable, "-m", "jupyter_console", "--kernel", "braid2", "--simple-prompt"],
            input='int half = 21;\n2 * half\nSystem.out.println("rank " + world.rank());\n'
            'throw new IllegalStateException("no luck");\nhalf + 1\nquit\n',
            capture_output=True,
            text=True,
            timeout=3 * TIMEOUT_S,
        )
        self.assertEqual(0, ended.returncode, ended.stderr)
        self.assertIn("Braid", ended.stdout)
        self.assertIn("42", ended.stdout)
        self.assertIn("rank 0", ended.stdout)
        self.assertIn("[1] rank 1", ended.stdout)
        self.assertIn("no luck", ended.stdout + ended.stderr)
        self.assertIn("22", ended.stdout)
