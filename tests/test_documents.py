"""What the documents and examples show does run."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", ["README.md", "docs/start.md"])
def test_code_blocks_run_in_order(name: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), flags=re.MULTILINE | re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), name, "exec"), {})


def test_the_demonstration_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples/demo.py"), run_name="__main__")
    assert "5. How many" in capsys.readouterr().out
    pictures = sorted((tmp_path / "build/demo").iterdir())
    assert [p.name for p in pictures] == ["answers.png", "error.png"]
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in pictures)
