"""A console on which text does nothing but appear."""

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
    """A console on which text does nothing but appear: control characters in it are shown, not obeyed.

    Styles and cursor movements are not text, and stay: rich keeps these apart until it writes.
    """

    def render_str(self, text: str, **how: Any) -> Text:
        """Replace them before the text is measured, so that tables stay aligned."""
        return super().render_str(words.on_terminal(text), **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Replace those that came some other way."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=words.on_terminal(segment.text))
