"""The arguments of `contribute`, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runner.commands import carried_out_by, command, may_replace, private_path

if TYPE_CHECKING:
    from runner.commands import Commands

DESCRIPTION = """\
Take part in a study that collects bundles, without staying online: count the table, seal the counts for
two of the three computing parties, write one file, end. The file may travel by any courier: each of the
two parties sees random bytes, everybody else a ciphertext. The study's whole budget is charged to this
contributor's ledger before the file exists; --settle replaces that by what the run has spent, as its
signed result says, or by nothing if the three parties have signed that no run will come of it.
Compare the fingerprints of the three keys that are shown with what the computing parties say of theirs:
who could exchange all of them would read the counts. The values are this contributor's own word.

The private file names `data`, `key` (an Ed25519 key, --make-key makes one) and, if wished, [ledger].
"""
EXAMPLES = """\
  cosynth contribute study.toml --party clinic --make-key clinic.key
  cosynth contribute study.toml --party clinic --private clinic.toml --out clinic.bundle
  cosynth contribute study.toml --party clinic --private clinic.toml --send clinic.bundle \\
      --to north=north.example:8443 south=south.example:8443 west=west.example:8443
  cosynth contribute study.toml --party clinic --private clinic.toml --settle result.json
  cosynth contribute study.toml --party clinic --private clinic.toml --settle void-*.json
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands, "contribute", carried_out_by("contribute"), description=DESCRIPTION, examples=EXAMPLES
    )
    parser.add_argument("study", metavar="STUDY", type=Path, help="the study file")
    parser.add_argument("-p", "--party", metavar="NAME", required=True, help="this contributor")
    parser.add_argument(
        "--private", metavar="FILE", type=private_path, help="its private settings: data, key, ledger"
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-o", "--out", metavar="FILE", type=Path, help="where the bundle goes")
    what.add_argument(
        "--make-key", metavar="FILE", type=Path, help="make a key; prints the line for the study's list"
    )
    what.add_argument(
        "--send", metavar="BUNDLE", type=Path, help="deliver the bundle to the parties' drop boxes"
    )
    what.add_argument(
        "--settle",
        metavar="FILE",
        nargs="+",
        type=Path,
        help="charge what a run has spent (result.json), or nothing for a study that all three parties say is void",
    )
    parser.add_argument(
        "--to",
        metavar="NAME=HOST:PORT",
        nargs="+",
        default=[],
        help="with --send: the drop box of each party; its certificate is to be NAME's by the `ca` of the private file, or else "
        "HOST's by an authority that this machine trusts",
    )
    parser.add_argument(
        "--split",
        action="store_true",
        help="with --out: one file for each computing party, FILE.PARTY.bundle",
    )
    may_replace(parser)
