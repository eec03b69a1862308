"""How the demo models are built, as far as that shows on a terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import build_demo_models
import pytest


class LoadingError(Exception):
    """The model would be loaded now."""


def test_no_bar_of_a_library_stands_in_the_demos_output(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Neither warnings nor progress bars of transformers, from before the model is loaded on."""
    said: list[str] = []

    class Model:
        @staticmethod
        def from_pretrained(*_: object, **__: object) -> None:
            raise LoadingError

    logging = SimpleNamespace(
        set_verbosity_error=lambda: said.append("errors alone"),
        disable_progress_bar=lambda: said.append("no bars"),
    )
    fake = SimpleNamespace(
        AutoModelForCausalLM=Model, AutoTokenizer=Model, GgufConfig=lambda **_: None, logging=logging
    )
    monkeypatch.setitem(sys.modules, "transformers", fake)

    with pytest.raises(LoadingError):
        build_demo_models.build_decomposer(tmp_path, tmp_path, "x.gguf")

    assert said == ["errors alone", "no bars"]


def test_no_bar_stands_in_a_log(tmp_path: Path):
    """Where stderr is no terminal the bars of tqdm itself are silent too."""
    code = (
        "import build_demo_models as build\n"
        "build.package_folder = build.Path\n"
        "build.publish = lambda *_: [*__import__('tqdm').tqdm(range(3))]\n"
        f"build.main(['--out', {str(tmp_path)!r}])"
    )
    scripts = Path(build_demo_models.__file__).parent

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=scripts, capture_output=True, text=True, check=True
    )

    assert done.stderr == ""
