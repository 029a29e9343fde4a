"""`python -m runner` as a later patch release has it: the same protocol version, another version of the
software."""

import runner.version

VERSION = "0.9.9"

if __name__ == "__main__":
    runner.version.VERSION = VERSION
    from runner.__main__ import program

    program()
