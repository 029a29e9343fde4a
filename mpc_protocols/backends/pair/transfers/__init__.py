"""Oblivious transfers (`docs/design/pair.md`): base transfers, their extension, random and correlated ones,
punctured keys."""
