"""What a run of a study will do and cost, told before it starts: `plan` (`docs/reference/command-line.md`)."""

from runner.forecast.plan_text import words
from runner.forecast.predict import Forecast, forecast

__all__ = ["Forecast", "forecast", "words"]
