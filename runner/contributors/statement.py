"""What computing parties sign for contributors: one JSON file, whose signatures are checked over its bytes
before it is read.

    {"KIND":CONTENT,
    "signatures":{"PARTY":"HEX",...}}

CONTENT is canonical JSON on one line; each signature is Ed25519 over FORMAT and CONTENT, by the key that the
study lists for the party. Nothing of the content is parsed before all three have been verified: not its
numbers, which may be of any size, nor its texts.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from mpc_protocols.backends.bundles.sealing import SIGNATURE_BYTES, ReceiverKey, verifies
from mpc_protocols.errors import PeerIdentity, StudiesDiffer, UsageError
from runner.study.sections.public_files import read_public

_MAX_SIGNATURES = 4096
_SIGNATURES = b',\n"signatures":'


def to_bytes(kind: str, content: bytes, signatures: Mapping[str, bytes]) -> bytes:
    """A file. content: canonical JSON."""
    signed = {name: signature.hex() for name, signature in signatures.items()}
    return _head(kind) + content + _SIGNATURES + json.dumps(signed).encode() + b"}\n"


def read(paths: Collection[Path], kinds: Mapping[str, str]) -> tuple[str, bytes, dict[str, bytes]]:
    """Kind, content and signatures of files that say the same. kinds: the FORMAT of each kind.

    Nothing is verified yet. Raises `UsageError`: a file that cannot be read, that is none of these, or that
    says something else.
    """
    found = [_parsed(path, kinds) for path in paths]
    kind, content, _ = found[0]
    for path, (other, said, _) in zip(paths, found, strict=True):
        if (other, said) != (kind, content):
            raise UsageError(
                f"{path} says something else than {next(iter(paths))}; name files of one study only."
            )
    return kind, content, {name: of for *_, signed in found for name, of in signed.items()}


def verify(
    what: str,
    signed: bytes,
    signatures: Mapping[str, bytes],
    study: bytes,
    receivers: Mapping[str, ReceiverKey],
) -> None:
    """Return if all computing parties have signed it, and it is of this study. what: the file, in words.

    Raises `StudiesDiffer` (it does not name the study's digest), `PeerIdentity`.
    """
    if study.hex().encode() not in signed:
        raise StudiesDiffer(f"{what} is of another study, or of another version of the program.")
    check_signatures(what, signed, signatures, receivers)


def check_signatures(
    what: str, signed: bytes, signatures: Mapping[str, bytes], receivers: Mapping[str, ReceiverKey]
) -> None:
    """Return if all computing parties have signed it; else raise `PeerIdentity`. what: the file, in words."""
    for name, key in receivers.items():
        if name not in signatures or not verifies(key.signing, signatures[name], signed):
            raise PeerIdentity(f"{what} does not bear the signature of party {name}; ask for the file anew.")


def _head(kind: str) -> bytes:
    return b'{"' + kind.encode() + b'":'


def _parsed(path: Path, kinds: Mapping[str, str]) -> tuple[str, bytes, dict[str, bytes]]:
    try:
        whole = read_public(path)
    except OSError as error:
        raise UsageError(f"The result {path} cannot be read ({error.strerror}).") from None
    except ValueError as error:
        raise UsageError(f"The result {path} cannot be read: {error}.") from None
    body, _, rest = whole.partition(_SIGNATURES)
    for kind in kinds:
        if len(rest) <= _MAX_SIGNATURES and body.startswith(_head(kind)):
            try:
                return kind, body.removeprefix(_head(kind)), _signatures(rest)
            except (ValueError, RecursionError):
                break
    raise UsageError(
        f"{path} is neither the signed result of a run over bundles (result.json) nor a party's word that the study is void."
    )


def _signatures(rest: bytes) -> dict[str, bytes]:
    form = json.loads(rest.strip().removesuffix(b"}"))
    if not isinstance(form, dict) or not all(isinstance(text, str) for text in form.values()):
        raise ValueError("Signatures were expected.")
    found = {name: bytes.fromhex(text) for name, text in form.items()}
    if any(len(signature) != SIGNATURE_BYTES for signature in found.values()):
        raise ValueError("A signature has another length.")
    return found
