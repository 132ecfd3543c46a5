"""A console that escapes control characters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console

from groundswell.reporting import words

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.text import Text


class SafeConsole(Console):
    """A console that escapes control characters in text.

    Styles and cursor movements still work: rich keeps them separate from text until it writes.
    """

    def render_str(self, text: str, **how: Any) -> Text:
        """Escape before the text is measured, to keep tables aligned."""
        return super().render_str(words.on_terminal(text), **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Escape text that did not pass through `render_str`."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=words.on_terminal(segment.text))
