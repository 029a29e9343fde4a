"""The links between real processes: everybody hears everybody, keys are pairwise, the session is one."""

from __future__ import annotations

from tests.parties.session import jobs
from tests.trio import Trio


def test_everybody_meets_everybody_but_contributors_one_another(trio_and_two: Trio) -> None:
    results = trio_and_two.run(jobs.greet)
    assert len({r["session"] for r in results}) == 1 and len(results[0]["session"]) == 32
    for me, result in enumerate(results):
        linked = [p for p in range(5) if p != me and (p < 3 or me < 3)]
        assert result["heard"] == {str(p): f"{p} to {me}" for p in linked}
        assert result["contributors"] == [3, 4] and result["computing"] == 3
        assert result["announcements"] == {
            name: {"data": True} for name in ("north", "south", "east", "west", "hill")
        }
    for a in range(3):
        for b in range(3):
            if a != b:
                assert results[a]["keys"][str(b)] == results[b]["keys"][str(a)]
    assert len({key for r in results[:3] for key in r["keys"].values()}) == 3
    assert all(len(key) == 32 for r in results[:3] for key in r["keys"].values())
    assert results[3]["keys"] == results[4]["keys"] == {}
