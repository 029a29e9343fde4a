"""Faults that break a build on purpose, by what they break; `runner.review.audit.broken_builds.mutations` has
them all."""
