"""The tool that makes the outputs of the tutorial, and the page that it made."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import tutorial
from bench.tutorial import BLOCK, PAGE, Shell, how_shown, made


def test_outputs_stand_below_their_commands(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    page = """# A page

```console
$ cd inner
old
$ echo a \\
  b
```

<!-- shown: 2; from: "three" -->

```console
$ printf 'one\\ntwo\\nthree\\nfour\\nfive\\n'; pwd | sed s,.*/,,
```

<!-- not run -->

```console
$ false
left as it is
```
"""
    text = made(page, Shell(tmp_path))
    assert "$ cd inner\n$ echo a \\\n  b\na b\n```" in text
    assert '<!-- shown: 2; from: "three" -->' in text
    assert "sed s,.*/,,\n...\nthree\nfour\n...\n```" in text
    assert text.endswith("$ false\nleft as it is\n```\n")
    assert made(text, Shell(tmp_path)) == text


def test_a_command_that_fails_ends_it(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="`ls nothing` ends with status 2"):
        Shell(tmp_path).run("ls nothing")
    with pytest.raises(ValueError, match="says nothing"):
        how_shown("shown: some")


def test_the_page_has_the_output_of_each_command_that_prints_one() -> None:
    blocks = list(BLOCK.finditer(PAGE.read_text(encoding="utf-8")))
    run = [found["text"] for found in blocks if how_shown(found["how"] or "") is not None]
    assert len(run) >= 6
    assert all(any(not line.startswith("$ ") for line in text.splitlines()) for text in run)


def test_the_page_is_written_elsewhere_if_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo out\n```\n")
    arguments = ["tutorial", str(tmp_path), "--page", str(page), "--output", str(tmp_path / "made.md")]
    monkeypatch.setattr("sys.argv", arguments)
    tutorial.main()
    assert (tmp_path / "made.md").read_text() == "```console\n$ echo out\nout\n```\n"
    assert page.read_text() == "```console\n$ echo out\n```\n"
