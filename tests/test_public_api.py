"""The public API is what its page lists, with these arguments, and the page's examples work."""

from __future__ import annotations

import doctest
import inspect
import re
import warnings
from pathlib import Path

import pytest

import cosynth

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "python.md"
TEXT = PAGE.read_text(encoding="utf-8")
SECTIONS = {
    title.strip("`"): text
    for title, text in re.findall(r"^## (.+?)$(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
}
CALLABLES = {
    "Study": ("read", "from_toml", "from_dict", "of"),
    "Run": ("sample", "query", "evaluate", "graph", "junction_tree"),
    "Synthesizer": ("__init__", "fit", "sample"),
}


def test_the_page_has_a_section_for_each_public_name_and_no_other() -> None:
    assert sorted(SECTIONS) == sorted(cosynth.__all__)


@pytest.mark.parametrize("name", cosynth.__all__)
def test_a_public_name_can_be_imported_and_says_what_it_is(name: str) -> None:
    value = getattr(cosynth, name)
    assert isinstance(value, str) or inspect.getdoc(value)


def described() -> list[tuple[str, str]]:
    whole = [(name, "") for name in cosynth.__all__ if inspect.isfunction(getattr(cosynth, name))]
    return whole + [(name, method) for name, methods in CALLABLES.items() for method in methods]


@pytest.mark.parametrize(("name", "method"), described())
def test_a_signature_on_the_page_is_that_of_the_code(name: str, method: str) -> None:
    """Names, order, defaults and which are by keyword only; types stand in the code."""
    public = getattr(cosynth, name)
    signature = inspect.signature(getattr(public, method) if method else public)
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    shown = str(inspect.Signature(bare)).replace("'", '"').replace("e-0", "e-")
    called = name if method in ("", "__init__") else method
    assert f"{called}{shown}`" in SECTIONS[name], f"{called}{shown}"


def test_every_public_attribute_of_a_class_is_on_the_page() -> None:
    for name in ("Run", "Synthesizer"):
        for attribute in vars(getattr(cosynth, name)):
            if not attribute.startswith("_") and attribute != "holder":
                assert re.search(rf"\b{attribute}\b", SECTIONS[name]), f"{name}.{attribute}"


def test_the_examples_of_the_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COSYNTH_LEDGER", str(tmp_path / "ledger.db"))
    examples = doctest.DocTestParser().get_doctest(TEXT.replace("```", ""), {}, PAGE.name, str(PAGE), 0)
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cosynth.CosynthWarning)
        outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples, out=said.append)
    assert outcome.attempted > 15 and outcome.failed == 0, "".join(said)
