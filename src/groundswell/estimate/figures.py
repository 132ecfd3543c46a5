"""Estimates: requests and tokens as ranges, by model. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from groundswell.engine.spending import NOTHING, Range

ONE = Range(1, 1)


class Load(msgspec.Struct, frozen=True):
    """All requests to one model.

    Attributes:
        model: The model.
        calls: Number of requests.
        input_tokens: Input tokens of all requests together.
        output_tokens: Output tokens of all requests together.
        turns: Length of the longest chain of requests that wait for each other.
        longest_prompt: Tokens of the longest prompt, if known.
    """

    model: str
    calls: Range
    input_tokens: Range
    output_tokens: Range
    turns: Range = ONE
    longest_prompt: float = 0.0

    def __add__(self, other: Load) -> Load:
        """One load after the other."""
        return self._with(other, self.turns + other.turns)

    def beside(self, other: Load) -> Load:
        """Both loads at the same time."""
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
        """One of two loads, when it is unknown which."""
        return Load(
            self.model,
            self.calls | other.calls,
            self.input_tokens | other.input_tokens,
            self.output_tokens | other.output_tokens,
            self.turns | other.turns,
            max(self.longest_prompt, other.longest_prompt),
        )


class Estimate(msgspec.Struct, frozen=True):
    """Estimated use of a run. `rehearse` creates one.

    Estimates can be combined: `a + b` runs one after the other, `a.beside(b)` both at the same time, and `a | b` means
    one of the two.

    Attributes:
        trials: Number of trials, as a range.
        loads: Requests and tokens, by model.
        turns: Length of the longest chain of requests, to any model, that wait for each other.
        assumptions: Sentences that say what the figures are based on.
        seconds: Time of a live run, if it was measured. It replaces the one that follows from turns and requests.
        usd: What the settings of a run let it cost, if they limit that.
        pilot: Number of requests that show what a run uses. 0: those of the first few trials.
    """

    trials: Range
    loads: tuple[Load, ...] = ()
    turns: Range = NOTHING
    assumptions: tuple[str, ...] = ()
    seconds: Range | None = None
    usd: Range | None = None
    pilot: int = 0

    def __add__(self, other: Estimate) -> Estimate:
        """One after the other: requests and turns add up."""
        return self._with(other, Load.__add__, self.turns + other.turns)

    def beside(self, other: Estimate) -> Estimate:
        """Both at the same time: the number of turns is that of the longer one."""
        return self._with(other, Load.beside, self.turns.longer(other.turns))

    def _with(self, other: Estimate, join: Callable[[Load, Load], Load], turns: Range) -> Estimate:
        loads = _by_model(self.loads)
        for load in other.loads:
            loads[load.model] = join(loads[load.model], load) if load.model in loads else load
        assumptions = _once([*self.assumptions, *other.assumptions])
        return Estimate(self.trials + other.trials, tuple(loads.values()), turns, assumptions)

    def __or__(self, other: Estimate) -> Estimate:
        """One of the two, when it is unknown which: the ranges include both."""
        mine, theirs = _by_model(self.loads), _by_model(other.loads)
        models = dict.fromkeys([*mine, *theirs])
        return Estimate(
            self.trials | other.trials,
            tuple(mine.get(model, _none(model)) | theirs.get(model, _none(model)) for model in models),
            self.turns | other.turns,
            _once([*self.assumptions, *other.assumptions]),
        )

    def assuming(self, *sentences: str) -> Estimate:
        """The same estimate with further assumptions."""
        return msgspec.structs.replace(self, assumptions=_once([*self.assumptions, *sentences]))


def _none(model: str) -> Load:
    return Load(model, NOTHING, NOTHING, NOTHING, NOTHING)


def _by_model(loads: Iterable[Load]) -> dict[str, Load]:
    return {load.model: load for load in loads}


def _once(sentences: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sentences))
