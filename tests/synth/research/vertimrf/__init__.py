"""VertiMRF with encoded columns."""
