"""Pictures of a finished run in a notebook, or as a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from markupsafe import escape

from mpc_protocols.errors import UsageError
from runner.failures import reason


@dataclass(frozen=True)
class Picture:
    """html: a page that loads nothing. width, height: in pixels."""

    html: str
    width: int
    height: int

    def __repr__(self) -> str:
        return f"Picture({self.width} x {self.height}; show it in a notebook, or save it: picture.save('run.html'))"

    def _repr_html_(self) -> str:
        """In a frame of its own, so that neither page's style reaches the other."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-same-origin" title="Cosynth" '
            f'style="border:0;width:100%;max-width:{self.width + 40}px;height:{self.height}px"></iframe>'
        )

    def save(self, path: str | Path) -> Path:
        """Write it as HTML, which browsers show and print. Raises `UsageError` where it cannot be written."""
        target = Path(path)
        try:
            target.write_text(self.html, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{target} cannot be written ({reason(error)}); name another file.") from None
        return target
