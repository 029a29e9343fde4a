"""How good the tables of each algorithm are: what `bench utility` measures (`benches.utility`)."""
