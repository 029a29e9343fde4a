"""`python -m runner` as a release of the next protocol version has it, which says the same of its software."""

import runner.version

if __name__ == "__main__":
    runner.version.PROTOCOL += 1
    from runner.__main__ import program

    program()
