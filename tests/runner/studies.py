"""Small studies for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

STUDY = """\
[study]
name = "trial"
algorithm = "aim"
backend = "replicated"
partition = "horizontal"

[privacy]
epsilon = 1.0
delta = 1e-9
adjacency = "add-remove"

[workload]
degree = 2

[aim]
rounds = 4

[domain.columns.age]
kind = "numeric"
low = 17
high = 90
bins = 8

[domain.columns.sex]
kind = "categorical"
values = ["f", "m"]

[domain.columns.work]
kind = "categorical"
values = ["a", "b", "c"]
missing = true

[session]
silence_s = 200
tls = "insecure-loopback"

[[party]]
name = "north"
address = "127.0.0.1:7101"
data = "north.csv"

[[party]]
name = "south"
address = "127.0.0.1:7102"
data = "south.csv"

[[party]]
name = "west"
address = "127.0.0.1:7103"
data = "west.csv"
"""


def head(
    name: str,
    *,
    backend: str = "ideal",
    partition: str = "horizontal",
    epsilon: str = "50.0",
    adjacency: str = "add-remove",
    degree: int = 2,
) -> str:
    """The tables [study], [privacy] and [workload] of a study by AIM."""
    return f"""\
[study]
name = "{name}"
algorithm = "aim"
backend = "{backend}"
partition = "{partition}"

[privacy]
epsilon = {epsilon}
delta = 1e-6
adjacency = "{adjacency}"
max_rows = 4096

[workload]
degree = {degree}

"""


def write_study(directory: Path, *changes: tuple[str, str], text: str = STUDY) -> Path:
    """The study with texts replaced; each must occur."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = directory / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path
