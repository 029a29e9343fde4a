"""Flower as courier: the two ends of `runner.contributors.courier` as a ServerApp and a ClientApp
(`docs/howto/fleet.md`)."""

STUDY, BUNDLE = "study", "bundle"
"""Names of the records that travel, and of the one value in each: bytes."""
