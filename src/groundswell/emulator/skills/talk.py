"""Talk about nothing in particular, that picks up what was said."""

from __future__ import annotations

from groundswell.emulator.skills.chance import Chance
from groundswell.emulator.skills.scene import Scene

OPENINGS = ("That is worth a thought.", "I see what you mean.", "Good point.", "Let me think about that for a moment.")


def chat(scene: Scene, chance: Chance) -> str:
    """An answer to whatever was said last."""
    return chance.pick(OPENINGS)
