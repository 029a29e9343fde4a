"""Faults of broken builds, found as those of `runner/review/audit/broken_builds/faults` are."""
