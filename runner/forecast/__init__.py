"""What a run of a study will do and cost, told before it starts: `plan` (`docs/reference/command-line.md`)."""

from runner.forecast.compare import compare, comparison
from runner.forecast.plan_text import words
from runner.forecast.predict import forecast
from runner.forecast.result import NETWORKS, Forecast, network

__all__ = ["NETWORKS", "Forecast", "compare", "comparison", "forecast", "network", "words"]
