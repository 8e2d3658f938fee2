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


def test_the_published_table_is_reproduced(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples/chen_hale_table.py"), run_name="__main__")
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    table = {" ".join(row[:-7]): [float(x) for x in row[-7:]] for row in rows if len(row) > 7}
    assert table["generalised Gaussian (Liu)"] == [1320, 264, 132, 88, 66, 52.8, 44]
    assert table["Chen and Hale, recomputed"] == [857.52, 170.27, 84.38, 55.77, 41.47, 32.90, 27.20]
    # To the two digits printed, rounded: 290.897, 61.395, ...
    assert table["exact, length sqrt(20)"] == pytest.approx(
        [290.897, 61.395, 32.343, 22.462, 17.412, 14.315, 12.205], abs=0.006
    )


def test_the_demonstration_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples/demo.py"), run_name="__main__")
    assert "5. How many" in capsys.readouterr().out
    pictures = sorted((tmp_path / "build/demo").iterdir())
    assert [p.name for p in pictures] == ["answers.png", "error.png"]
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in pictures)
