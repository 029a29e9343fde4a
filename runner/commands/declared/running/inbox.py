"""The arguments of `inbox`, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
A study with [contributors] collects sealed bundles. Each of its three computing parties has an inbox:
the folder inbox/NAME beside the study, or what `inbox` names in its private file.

--make-key, once, before the study goes out: makes this party's keys for the study. The secret half stays
in the inbox, the public half goes into the file that [contributors] receivers names; where the parties
sit at different places, merge their files into one.
--add and --watch take bundles in that came by any courier. Each is checked: study, marginals, contributor,
signature, expiry, and that its part can be opened here. A contributor's first bundle counts. Nothing is
added up before the collection is over and `run` is started.
--listen is a drop box: contributors deliver over HTTPS (`contribute --send`). It shows `cert` of the private
file, and takes from nobody but the study's contributors, who sign each upload.
--void, where no run will come about: signs that, for good, and deletes bundles and keys. With the word of all
three parties contributors get back what their ledgers have reserved. It is refused once a run has begun to release.
"""
EXAMPLES = """\
  cosynth inbox study.toml --party north --make-key
  cosynth inbox study.toml --party north --add *.bundle
  cosynth inbox study.toml --party north --watch arrivals
  cosynth inbox study.toml --party north --private north.toml --listen 0.0.0.0:8443
  cosynth inbox study.toml --party north --list
  cosynth inbox study.toml --party north --private north.toml --void
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(commands, "inbox", carried_out_by("inbox"), description=DESCRIPTION, examples=EXAMPLES)
    parser.add_argument("study", metavar="STUDY", type=Path, help="the study file")
    parser.add_argument("-p", "--party", metavar="NAME", required=True, help="this computing party")
    parser.add_argument("--private", metavar="FILE", type=Path, help="this party's private settings")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--make-key", action="store_true", help="make this party's keys for the study")
    what.add_argument("--add", metavar="FILE", nargs="+", type=Path, help="take these bundles in")
    what.add_argument(
        "--watch", metavar="DIR", type=Path, help="take in what appears in this folder, until stopped"
    )
    what.add_argument(
        "--listen", metavar="HOST:PORT", help="take in what contributors send over HTTPS, until stopped"
    )
    what.add_argument(
        "--void",
        action="store_true",
        help="sign that no run of this study will open anything, and delete bundles and keys",
    )
    what.add_argument("--list", action="store_true", help="who has left a bundle so far")
