"""What a run of a study will do and cost, told before it starts: `plan` (DESIGN section 8)."""

from runner.forecast.plan_text import words
from runner.forecast.predict import Forecast, forecast

__all__ = ["Forecast", "forecast", "words"]
