"""Pictures of a finished run in a notebook, or as a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PosixPath
from typing import TYPE_CHECKING, Any

from markupsafe import escape

from mpc_protocols.errors import UsageError
from runner.failures import reason
from runner.report.drawings.pictures import WIDTH, Part, height_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGES = (".html", ".htm")
REPORT_HEIGHT = 720
"""In pixels, of the frame in which a notebook shows a report; its page scrolls within."""


class Report(PosixPath):
    """The path of a run's report, which a notebook shows as the page."""

    def _repr_html_(self) -> str | None:
        """None, for the path as text, where there is no such page: its folder is one of these, too."""
        try:
            page = self.read_text(encoding="utf-8")
        except OSError:
            return None
        return _framed(page, "100%", REPORT_HEIGHT)


def _framed(page: str, width: str, height: int) -> str:
    """A page in a frame of its own, so that neither page's style reaches the other."""
    return (
        f'<iframe srcdoc="{escape(page)}" sandbox="allow-same-origin" title="Cosynth" '
        f'style="border:0;width:100%;max-width:{width};height:{height}px"></iframe>'
    )


@dataclass(frozen=True)
class Picture:
    """html: a page that loads nothing. parts: what is drawn on it."""

    html: str
    parts: tuple[Part, ...] = field(repr=False)

    @property
    def width(self) -> int:
        """In pixels."""
        return WIDTH

    @property
    def height(self) -> int:
        """In pixels, about."""
        return height_of(self.parts)

    def __repr__(self) -> str:
        return f"Picture({self.width} x {self.height}; show it in a notebook, or save it: picture.save('run.html'))"

    def _repr_html_(self) -> str:
        return _framed(self.html, f"{self.width + 40}px", self.height)

    def save(self, path: str | Path) -> Path:
        """Write it as HTML, which browsers show and print. Raises `UsageError` where it cannot be written."""
        target = Path(path)
        try:
            target.write_text(self.html, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{target} cannot be written ({reason(error)}); name another file.") from None
        return target

    def figure(self) -> Figure:
        """The same drawings as a matplotlib figure. Raises `UsageError` where matplotlib (the extra `plot`)
        is not installed."""
        from runner.report.figure import figure

        return figure(self.parts)

    def savefig(self, path: str | Path, **options: Any) -> Path:
        """Write it as matplotlib does, by the ending of the path (.png, .pdf, .svg), with its options; .html:
        as `save`.

        Raises `UsageError` where it cannot be written so, or, but for .html, where matplotlib is not
        installed.
        """
        target = Path(path)
        if target.suffix in PAGES:
            return self.save(target)
        try:
            self.figure().savefig(target, **options)
        except OSError as error:
            raise UsageError(f"{target} cannot be written ({reason(error)}); name another file.") from None
        except ValueError:  # an ending that matplotlib does not know
            raise UsageError(
                f"A picture is not written as {target.suffix or target.name}; end its name in .png, .pdf, .svg or .html."
            ) from None
        return target
