"""The command line, the launcher, the report, and the Python API: `run_study`. Light to import."""

from __future__ import annotations

from runner.api import Run, run_study

__all__ = ["Run", "run_study"]
