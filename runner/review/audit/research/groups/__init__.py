"""Groups of checks, found as those of `runner/review/audit/groups` are."""
