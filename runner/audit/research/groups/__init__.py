"""Groups of checks, found as those of `runner/audit/groups` are."""
