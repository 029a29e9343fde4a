"""`audit [GROUP ...]`: attacks on this build, and what they found (`docs/howto/audit-a-run.md`)."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_protocols.errors import UsageError
from runner.commands import command
from runner.failures import reason

if TYPE_CHECKING:
    from runner.audit.check import Group
    from runner.commands import Commands

DESCRIPTION = """\
Attack this build and say what was found: what parties receive, what travels, what noise there is, what
is charged, what certificates are let in. Each check states a claim, its evidence, and what it would have
seen. A pass is no proof.

Audited are the demo's study and data, or with --study another study's parameters, on invented rows; no
private data is read. The parties compute on this machine.
"""
EXAMPLES = """\
  python -m runner audit --quick                      the cheap checks of all groups
  python -m runner audit --study study.toml --out audit
  python -m runner audit V T --backend shamir --backend pair
  python -m runner audit --only A.events --json audit.json
  python -m runner audit --mutations                  break the build on purpose: each fault must be found

exit codes of an audit: 0 passes, 1 a violation, 2 usage, 3 a check decides nothing, 4 a check could not
be carried out
"""


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "audit",
        run,
        help="attack this build, and see what is found",
        description=DESCRIPTION,
        examples=EXAMPLES,
    )
    parser.add_argument("groups", metavar="GROUP", nargs="*", help="letters of groups (default: all)")
    parser.add_argument("--list", action="store_true", help="say what there is to check")
    parser.add_argument(
        "--study", metavar="FILE", type=Path, help="audit this study's parameters (default: the demo's)"
    )
    parser.add_argument(
        "--backend",
        metavar="NAME",
        action="append",
        default=[],
        help="this backend; may be repeated (default: all)",
    )
    parser.add_argument(
        "--only", metavar="CHECK", action="append", default=[], help="this check; may be repeated"
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help="the cheap checks, about a minute")
    length.add_argument("--deep", action="store_true", help="all checks, with larger samples")
    parser.add_argument(
        "--mutations", action="store_true", help="break the build on purpose and see the faults found"
    )
    parser.add_argument(
        "--seed", metavar="TEXT", help="repeat an audit's choices (default: a fresh one, printed)"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="the findings for machines")
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="write audit.json and audit.html here",
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command; ends with the audit's exit code."""
    from runner.audit import check, driver
    from runner.audit.broken_builds import mutations
    from runner.audit.output import facts, lines, page
    from runner.audit.subjects.subject import subject

    groups = check.load()
    if arguments.list:
        _list(groups)
        return
    profile = (
        check.Profile.QUICK
        if arguments.quick
        else check.Profile.DEEP
        if arguments.deep
        else check.Profile.DEFAULT
    )
    checks = driver.chosen(groups, arguments.groups, arguments.only, profile)
    written = _files(arguments)
    seed = arguments.seed or secrets.token_hex(8)
    print(f"audit with seed {seed}", flush=True)
    results, caught = [], []
    with subject(arguments.study, arguments.backend, profile, seed) as audited:
        for result in driver.carry_out(audited, checks):
            print(lines.line(result), flush=True)
            results.append(result)
        if arguments.mutations:
            names = [result.name for result in results]
            for each in mutations.campaign(names, arguments.study, audited.distributed[0].name, seed):
                print(lines.mutation(each), flush=True)
                caught.append(each)
        found = facts.facts(audited, results, caught)
        for path in written:
            text = (
                page.page(found, results) if path.name == "audit.html" else json.dumps(found, indent=1) + "\n"
            )
            path.write_text(text, encoding="utf-8")
    print(lines.last(results))
    missed = any(not each.found for each in caught)
    verdict = driver.overall([result.finding.verdict for result in results])
    code = driver.EXIT_CODES[check.Verdict.FAIL if missed else verdict]
    if code:
        sys.exit(code)


def _list(groups: dict[str, Group]) -> None:
    from runner.audit.driver import full_name

    for group in groups.values():
        print(f"{group.letter}  {group.title}: {group.question}")
        for each in group.checks:
            print(f"   {full_name(group, each):16} {each.profile.name.lower():8} {each.claim}")


def _files(arguments: argparse.Namespace) -> list[Path]:
    """Where the findings go. Raises `UsageError` now if they could not be written in the end."""
    written: list[Path] = [arguments.json] if arguments.json else []
    if arguments.out:
        written += [arguments.out / "audit.json", arguments.out / "audit.html"]
    for path in written:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.open("a", encoding="utf-8").close()
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {reason(error)}.") from None
    return written
