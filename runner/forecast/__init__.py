"""What a run of a study will do and cost, told before it starts: `plan` (DESIGN section 8)."""

from runner.forecast.predict import Forecast, forecast
from runner.forecast.words import words

__all__ = ["Forecast", "forecast", "words"]
