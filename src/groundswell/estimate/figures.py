"""An estimate: calls and tokens as ranges, model by model. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from groundswell.engine.spending import NOTHING, Range

ONE = Range(1, 1)


class Load(msgspec.Struct, frozen=True):
    """All calls to one model: how many, and their tokens in total. At the most `turns` of them wait for each other.

    `longest_prompt` is how many tokens a single prompt may have, where that is known.
    """

    model: str
    calls: Range
    input_tokens: Range
    output_tokens: Range
    turns: Range = ONE
    longest_prompt: float = 0.0

    def __add__(self, other: Load) -> Load:
        """This load, and then that one."""
        return self._with(other, self.turns + other.turns)

    def beside(self, other: Load) -> Load:
        """Both at the same time."""
        return self._with(other, self.turns.longer(other.turns))

    def _with(self, other: Load, turns: Range) -> Load:
        return Load(
            self.model,
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            turns,
            max(self.longest_prompt, other.longest_prompt),
        )

    def __or__(self, other: Load) -> Load:
        """Either of two."""
        return Load(
            self.model,
            self.calls | other.calls,
            self.input_tokens | other.input_tokens,
            self.output_tokens | other.output_tokens,
            self.turns | other.turns,
            max(self.longest_prompt, other.longest_prompt),
        )


class Estimate(msgspec.Struct, frozen=True):
    """What a run would use. `turns`: how many calls, of whatever model, wait for each other at the most."""

    trials: Range
    loads: tuple[Load, ...] = ()
    turns: Range = NOTHING
    assumptions: tuple[str, ...] = ()

    def __add__(self, other: Estimate) -> Estimate:
        """First one thing, then another: calls and turns add up."""
        return self._with(other, Load.__add__, self.turns + other.turns)

    def beside(self, other: Estimate) -> Estimate:
        """Both at the same time: it takes as many turns as the longer of them."""
        return self._with(other, Load.beside, self.turns.longer(other.turns))

    def _with(self, other: Estimate, join: Callable[[Load, Load], Load], turns: Range) -> Estimate:
        loads = _by_model(self.loads)
        for load in other.loads:
            loads[load.model] = join(loads[load.model], load) if load.model in loads else load
        assumptions = _once([*self.assumptions, *other.assumptions])
        return Estimate(self.trials + other.trials, tuple(loads.values()), turns, assumptions)

    def __or__(self, other: Estimate) -> Estimate:
        """One thing or another: nobody knows which."""
        mine, theirs = _by_model(self.loads), _by_model(other.loads)
        models = dict.fromkeys([*mine, *theirs])
        return Estimate(
            self.trials | other.trials,
            tuple(mine.get(model, _none(model)) | theirs.get(model, _none(model)) for model in models),
            self.turns | other.turns,
            _once([*self.assumptions, *other.assumptions]),
        )

    def assuming(self, *sentences: str) -> Estimate:
        """The same, with more that it rests on."""
        return msgspec.structs.replace(self, assumptions=_once([*self.assumptions, *sentences]))


def _none(model: str) -> Load:
    return Load(model, NOTHING, NOTHING, NOTHING, NOTHING)


def _by_model(loads: Iterable[Load]) -> dict[str, Load]:
    return {load.model: load for load in loads}


def _once(sentences: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sentences))
