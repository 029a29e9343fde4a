"""A toy engine of tallies: the parts are CSV files of a folder, which it opens one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from parties.data.linked.opening import open_source
from parties.data.location import locate
from parties.data.tallies.counting import Counting, count_partition, place_of
from parties.data.tallies.engine import TallyEngine
from parties.data.tallies.places import EngineTallies


class Folder(TallyEngine):
    """files: a pattern of their paths."""

    name = "folder"

    def misfit(self, settings: Mapping[str, object]) -> str | None:
        if settings.keys() == {"files"} and isinstance(settings["files"], str):
            return None
        return 'must name the parts and nothing else: files = "parts/*.csv"'

    def tallies(self, place: EngineTallies, counting: Counting) -> Iterator[bytes]:
        for path in sorted(place.folder.glob(str(place.settings["files"]))):
            with open_source(locate(path)) as source:
                yield count_partition(source, counting, place_of(path)).to_bytes()


ENGINE = Folder()
