"""FLORIST: a classifier that two owners train on the union of their records."""
