"""What a request says, read once: the instructions, and who said what."""

from __future__ import annotations

from typing import NamedTuple

from groundswell.program.request import Chat, Message, Text


class Scene(NamedTuple):
    """A conversation from the model's side."""

    system: str
    last: str
    """What the other side said last; empty where it has not spoken."""
    mine: list[str]
    theirs: list[str]

    @property
    def brief(self) -> str:
        """The instructions: the system prompt, or the first message where there is none."""
        return self.system or (self.theirs[0] if self.theirs else "")


def spoken(message: Message) -> str:
    """The text of a message, images left out."""
    content = message.content
    if isinstance(content, str):
        return content
    return "\n".join([part.text for part in content if isinstance(part, Text)])


def scene_of(request: Chat) -> Scene:
    """The conversation of a request. What a tool returned counts as said by the other side."""
    system: list[str] = []
    mine: list[str] = []
    theirs: list[str] = []
    for message in request.messages:
        content, role = message.content, message.role
        text = content if type(content) is str else spoken(message)
        if role == "assistant":
            mine.append(text)
        elif role == "system":
            system.append(text)
        else:
            theirs.append(text)
    return Scene("\n".join(system), theirs[-1] if theirs else "", mine, theirs)
