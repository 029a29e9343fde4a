"""Faults that break a build on purpose, by what they break; `runner.audit.broken_builds.mutations` has them all."""
