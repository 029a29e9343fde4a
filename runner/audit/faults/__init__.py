"""Faults that break a build on purpose, by what they break; `runner.audit.mutations` has them all."""
