"""One benchmark per file, each holding `BENCH` (see `runner.bench.registry`)."""
