"""Benchmarks of their own names, found as those of `runner/bench/benches` are."""
