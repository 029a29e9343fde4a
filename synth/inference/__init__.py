"""Answers with intervals, from what a run has released: post-processing, no private data, no further budget.

Derivation, proof and what was measured: `docs/design/inference.md`.

    language   the text of a question, parsed
    parts      what a condition or a value is, column by column
    moments    the expected number of rows of some kind, and functions of such numbers with their gradients
    read_off   the least-squares estimate of such numbers from the noisy marginals, and what the noise does to it
    estimands  questions as functions of moments; regression: those of fits
    intervals  an estimate, a variance and a level give an interval
    licence    what of a run can be answered from at all
    answers    all of it together: `infer`
"""

from synth.inference.answers import NOT_COMPUTED, Answer, Target, infer
from synth.inference.licence import NotMeasured, Unanswerable, UnfitRun

__all__ = ["NOT_COMPUTED", "Answer", "NotMeasured", "Target", "Unanswerable", "UnfitRun", "infer"]
