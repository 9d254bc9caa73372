"""The README's Python examples run as they are printed."""

import os
import re
import sys
from pathlib import Path
from subprocess import run

import pytest

_ROOT = Path(__file__).parents[2]
_EXAMPLES = re.findall(r"^```python\n(.*?)^```", (_ROOT / "README.md").read_text("utf-8"), re.M | re.S)


def _run(code: str, folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
    call = [sys.executable, "-c", code]
    done = run(call, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_examples() -> None:
    assert len(_EXAMPLES) == 2


@pytest.mark.parametrize("number", range(len(_EXAMPLES)))
def test_example_runs_and_prints_what_its_comments_say(number: int, tmp_path: Path) -> None:
    code = _EXAMPLES[number]
    expected = re.findall(r"^\s*# prints: (.*)$", code, re.M)
    assert _run(code, tmp_path).splitlines() == expected
