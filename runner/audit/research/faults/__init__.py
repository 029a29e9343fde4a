"""Faults of broken builds, found as those of `runner/audit/broken_builds/faults` are."""
