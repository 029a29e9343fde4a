"""Hypothesis without deadlines: tests run on shared machines, where a slow example says nothing about the code."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("cosynth", deadline=None)
settings.load_profile("cosynth")
