"""A tiny study of a training on disk: north has three columns of some people, south the label of others, west
only computes.

path = trained.write(tmp_path)
path = trained.write(tmp_path, ('label_epsilon = 2.0', ''))
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from tests.worlds.ports import free_ports

STUDY = """\
[study]
name = "trained"
algorithm = "florist"
backend = "replicated"
partition = "vertical"
research = true

[privacy]
epsilon = 2.0
delta = 1e-6
adjacency = "replace"
max_rows = 4096

[florist]
label = "ill"
label_epsilon = 2.0
cut = 8
batch = 16
epochs = 2

[domain.columns]
age = 6
work = 4
region = 5
ill = 2

[alignment]
method = "psu"
id = "person"
min_size = 10

[session]
connect_s = 300
silence_s = 200
"""
PARTIES = {"north": ("age", "work", "region"), "south": ("ill",), "west": ()}
PEOPLE, ONLY = 300, 60
"""How many there are; how many each owner lacks."""


def write(directory: Path, *changes: tuple[str, str]) -> Path:
    """The study and its tables. changes: texts that must occur."""
    directory.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(4)
    codes = np.stack([rng.integers(0, size, PEOPLE) for size in (6, 4, 5)], axis=1)
    ill = (codes[:, 0] + rng.integers(0, 3, PEOPLE) > 5).astype(int)
    rows = np.c_[codes, ill]
    names = ("age", "work", "region", "ill")
    held = {"north": range(PEOPLE - ONLY), "south": range(ONLY, PEOPLE)}
    text = STUDY
    for (name, columns), port in zip(PARTIES.items(), free_ports(len(PARTIES)), strict=True):
        text += f'\n[[party]]\nname = "{name}"\naddress = "127.0.0.1:{port}"\n'
        if columns:
            text += f'data = "{name}.csv"\n'
            with (directory / f"{name}.csv").open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(("person", *columns))
                for person in rng.permutation(held[name]):
                    writer.writerow(
                        (f"p{person}", *(rows[person, names.index(column)] for column in columns))
                    )
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = directory / "study.toml"
    path.write_text(text)
    return path
