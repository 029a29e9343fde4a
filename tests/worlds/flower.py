"""As much of Flower as the app in `examples/fleet/` uses, in one process: nodes answer by functions, messages
are objects.

    monkeypatch.syspath_prepend(APP); flower.install(monkeypatch)
    importlib.import_module("cosynth_fleet.server_app").app.function(Grid(answers), Context(run_config={...}))

`make fleet` runs the same app on Flower itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


@dataclass(frozen=True)
class Context:
    """What an app is told of where it runs."""

    run_config: Mapping[str, object] = field(default_factory=dict)
    node_config: Mapping[str, object] = field(default_factory=dict)


class Message:
    """To a node, or its reply."""

    def __init__(
        self,
        content: dict[str, Any],
        dst_node_id: int = 0,
        message_type: str = "",
        group_id: str = "",
        reply_to: Message | None = None,
    ) -> None:
        self.content, self.type, self.node = content, message_type, dst_node_id
        self.metadata = SimpleNamespace(src_node_id=reply_to.node if reply_to else 0)

    def has_error(self) -> bool:
        """Whether Flower answers in the node's place."""
        return self.content.get("error") is not None


class App:
    """A ServerApp or a ClientApp: the function that it was given."""

    function: Callable[..., Any]

    def main(self) -> Callable[[Callable[..., Any]], None]:
        """Decorator."""
        return self._take

    query = main

    def _take(self, function: Callable[..., Any]) -> None:
        self.function = function


@dataclass
class Grid:
    """nodes: what each answers, by its id. Those whose answer is an exception get Flower's own reply. asked:
    ids, in order."""

    nodes: dict[int, Callable[[Message], Message]]
    asked: list[int] = field(default_factory=list)

    def get_node_ids(self) -> Iterable[int]:
        """Who is there."""
        return list(self.nodes)

    def send_and_receive(self, messages: Iterable[Message], timeout: float) -> Iterable[Message]:
        """Everybody's replies."""
        replies = []
        for message in messages:
            assert message.type == "query"
            self.asked.append(message.node)
            try:
                replies.append(self.nodes[message.node](message))
            except Exception as error:
                replies.append(Message({"error": repr(error)}, reply_to=message))
        return replies


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `flwr` be this for a test."""
    parts: dict[str, dict[str, Any]] = {
        "flwr": {},
        "flwr.app": {
            "ConfigRecord": dict,
            "RecordDict": dict,
            "Context": Context,
            "Message": Message,
            "MessageType": SimpleNamespace(QUERY="query"),
        },
        "flwr.clientapp": {"ClientApp": App},
        "flwr.serverapp": {"ServerApp": App, "Grid": Grid},
    }
    for name, content in parts.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
