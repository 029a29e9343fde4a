"""Owners that report once."""
