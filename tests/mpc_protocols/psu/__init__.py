"""Tests of private set union."""
