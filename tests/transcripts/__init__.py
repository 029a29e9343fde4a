"""What travels in runs with fixed coins, as it was recorded: a change of code that is to change nothing
changes no byte of it."""
