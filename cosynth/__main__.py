"""`python -m cosynth` is `python -m runner`, also where the current directory holds a `runner` of its own."""

import cosynth

if __name__ == "__main__":
    cosynth.load  # noqa: B018 - loads the packages beside this one
    from runner.__main__ import program

    program()
