"""Owners of columns report once, each to the leader, in place of answering an oracle's questions
(`exchange`); where the owners need a secret that nobody else knows, they draw it together before
(`common_key`)."""
