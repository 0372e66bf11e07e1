# SPDX-License-Identifier: Apache-2.0
"""examples/python does what it says, in small sizes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(script, *arguments):
    done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, cwd=EXAMPLES.parent, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_torch_block():
    pytest.importorskip("torch", reason="torch is not installed: the example is SKIPPED")
    text = run(EXAMPLES / "python/torch_block.py", "--steps=4", "--embed=32", "--batch=2", "--seq=16")
    assert re.search(r"losses at most \d\.\de-0[4-9] apart", text), text


def test_the_notebook():
    """Its cells, one after another, with what they show."""
    notebook = json.loads((EXAMPLES / "python/accounting.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    shown = []
    names = {"display": shown.append, "print": lambda *words: shown.append(" ".join(map(str, words)))}
    here = os.getcwd()
    os.chdir(EXAMPLES / "python")
    try:
        for cell in cells:
            exec(compile(cell, "accounting.ipynb", "exec"), names)
    finally:
        os.chdir(here)
    text = "\n".join(str(piece) for piece in shown)
    assert "124,439,808 parameters" in text  # GPT-2's, as OpenAI counts them
    assert any(hasattr(piece, "_repr_html_") and "<iframe" in piece._repr_html_() for piece in shown)
