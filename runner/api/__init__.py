"""The Python API: studies, runs and what comes of them, from a notebook or a test. Light to import.

    running     run a study with all parties on this machine; open a finished run
    run         a finished run: its table, more rows, marginals, graphs, a judgement, a card in a notebook
    conditions  which rows `Run.sample` is to draw
    spark       the counts of a custodian's Spark DataFrame
    synthesizer fit and sample on one table of one machine

Studies in code are `runner.study.Study`'s own: from a dict, from TOML text, from a few words.
"""

from __future__ import annotations

from runner.api.conditions import between
from runner.api.run import Run
from runner.api.running import load, run_study
from runner.api.spark import tally_spark
from runner.api.synthesizer import Synthesizer

__all__ = ["Run", "Synthesizer", "between", "load", "run_study", "tally_spark"]
