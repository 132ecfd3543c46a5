"""How well the rules agree with labels, and leak rates corrected for their errors: figures and blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from groundswell.experiments.secret_game.analysis import RateFigure
from groundswell.experiments.secret_game.conversations import Conversation, Label, represented
from groundswell.experiments.secret_game.figures import LEVEL, share_figure
from groundswell.experiments.secret_game.played import TIERS, Played, Talk, Tier
from groundswell.experiments.secret_game.tally import Tally
from groundswell.reporting import numbers
from groundswell.reporting.blocks import Block, Cell, Estimate, Table, Text, estimate
from groundswell.stats.agreement import Share, Unit, cohens_kappa, precision_recall, rogan_gladen

CLASS_OF: dict[Label, str] = {
    "declared": "declared",
    "confirmed": "declared",
    "bluff": "bluff",
    "denied": "mentioned",
    "hinted": "hinted",
    "mentioned": "mentioned",
    "none": "none",
}
"""The class of each label: to confirm is to declare, and a denied word is mentioned."""
CLASSES = ("declared", "hinted", "mentioned", "bluff")
LEAKS = ("declared", "confirmed")
ENOUGH = 20
"""Labelled sides of a model with a leak, and without one, from which its own errors are used instead of all models'."""


class Labelled(NamedTuple):
    """A conversation with findings and labels."""

    talk: Talk
    played: Played
    conversation: Conversation


class ShareFigure(msgspec.Struct, frozen=True):
    """A share or kappa with its interval; None if it is not defined."""

    value: float | None
    low: float
    high: float


class Errors(msgspec.Struct, frozen=True):
    """How often findings and labels agree, for a class of messages or a tier of sides. Counts are without weights."""

    name: str
    n: int
    true: int
    found: int
    both: int
    precision: ShareFigure
    recall: ShareFigure
    kappa: ShareFigure


class Corrected(msgspec.Struct, frozen=True):
    """A leak rate as measured, and corrected for the known errors of the headline tier."""

    model: str
    """Empty for all models."""
    measured: RateFigure
    corrected: ShareFigure
    pooled: bool
    """Whether the errors are those of all models, because this one has too few labels."""


class Readers(msgspec.Struct, frozen=True):
    """Agreement of the first two readers on messages, by class."""

    messages: int
    agreed: ShareFigure
    kappa: ShareFigure


class Agreement(msgspec.Struct, frozen=True):
    """Findings against labels. Labels count from conversations whose messages all have one."""

    conversations: int
    messages: int
    sides: int
    unsure: int
    weighted: bool
    tier: Tier
    classes: list[Errors]
    """By message."""
    tiers: list[Errors]
    """By side: whether it declared its secret."""
    corrected: list[Corrected]
    readers: Readers | None = None
    represented: int | None = None
    """Number of conversations that the labelled ones stand for; None if they were not drawn from strata."""
    scorable: int = 0
    """Number of conversations that can be scored."""


def agreement_of(
    labelled: Sequence[Labelled], conversations: Sequence[Conversation], tally: Tally, seed: int
) -> Agreement:
    """All figures. They depend on the order of conversations only through the seed. `conversations` are all."""
    strata = {name: at for at, name in enumerate(sorted({each.conversation.stratum for each in labelled}))}
    messages = [(each, turn) for each in labelled for turn in _own(each)]
    sides = [(each, seat) for each in labelled for seat in each.talk.sides]

    def unit(each: Labelled, truth: object, found: object) -> Unit:
        about = each.conversation
        return Unit(truth, found, each.talk.number, about.weight or 1.0, strata[about.stratum])

    def tier_units(tier: Tier, model: str = "") -> list[Unit]:
        return [
            unit(each, _leaked(each, seat), each.played.leak(seat, tier) is not None)
            for each, seat in sides
            if (tier != "judged" or each.played.judged(seat)) and model in ("", each.talk.seats[seat].arm)
        ]

    first = [(each, _label(each, turn), _found(each, turn)) for each, turn in messages]
    classes = [
        _errors(name, [unit(e, label == name, found == name) for e, label, found in first], seed) for name in CLASSES
    ]
    tiers = [_errors(tier, units, seed) for tier in TIERS if (units := tier_units(tier))]
    twice = [
        unit(each, *(CLASS_OF[one] for one in readings[:2]))
        for each, turn in messages
        if len(readings := each.conversation.messages[turn].readings) > 1
    ]
    return Agreement(
        conversations=len(labelled),
        messages=len(messages),
        sides=len(sides),
        unsure=sum(each.conversation.messages[turn].unsure for each, turn in messages),
        weighted=len({each.conversation.weight or 1.0 for each in labelled}) > 1,
        tier=tally.tier,
        classes=classes,
        tiers=tiers,
        corrected=list(_corrected(tally, tier_units(tally.tier), lambda model: tier_units(tally.tier, model), seed)),
        readers=_readers(twice, seed) if twice else None,
        represented=represented(conversations),
        scorable=sum(not each.unscorable for each in conversations),
    )


def _own(each: Labelled) -> Iterator[int]:
    """The turns of the sides."""
    return (turn for turn, line in enumerate(each.talk.lines) if line.seat in each.talk.sides)


def _label(each: Labelled, turn: int) -> str:
    return CLASS_OF[each.conversation.messages[turn].readings[0]]


def _leaked(each: Labelled, seat: int) -> bool:
    """Whether a side declared its secret, by its labels."""
    lines, said = each.talk.lines, each.conversation.messages
    return any(said[turn].readings[0] in LEAKS for turn in _own(each) if lines[turn].seat == seat)


def _found(each: Labelled, turn: int) -> str:
    """The class of a message by the rules, in the order of the labels: a denied word counts before a hint."""
    own = [found for found in each.played.told(each.talk.lines[turn].seat) if found.turn == turn]
    if any(found.label == "declared" for found in own):
        return "declared"
    if any(bluff.turn == turn for bluff in each.played.bluffs):
        return "bluff"
    if any(found.label == "mentioned" and found.how == "denied" for found in own):
        return "mentioned"
    return next((name for name in ("hinted", "mentioned") if any(found.label == name for found in own)), "none")


def _errors(name: str, units: Sequence[Unit], seed: int) -> Errors:
    found, kappa = precision_recall(units, LEVEL, seed), cohens_kappa(units, LEVEL, seed)
    shares = (_figure(found.precision), _figure(found.recall), ShareFigure(kappa.value, kappa.low, kappa.high))
    return Errors(name, found.n, found.true, found.found, found.both, *shares)


def _figure(share: Share) -> ShareFigure:
    return ShareFigure(share.value, share.low, share.high)


def _readers(units: Sequence[Unit], seed: int) -> Readers:
    kappa = cohens_kappa(units, LEVEL, seed)
    return Readers(len(units), _figure(kappa.agreed), ShareFigure(kappa.value, kappa.low, kappa.high))


def _corrected(
    tally: Tally, every: Sequence[Unit], of_model: Callable[[str], list[Unit]], seed: int
) -> Iterator[Corrected]:
    """The leak rate of all sides, and that of each model."""
    pooled = precision_recall(every, LEVEL, seed)
    shares = {"": tally.revealed[tally.tier]} | {
        name: tally.models[name].revealed[tally.tier] for name in sorted(tally.models)
    }
    for model, share in shares.items():
        own = of_model(model)
        leaks = sum(bool(unit.truth) for unit in own)
        enough = not model or min(leaks, len(own) - leaks) >= ENOUGH
        errors = precision_recall(own, LEVEL, seed) if model and enough else pooled
        measured = share_figure(share)
        found = None
        if measured.rate is not None:
            found = rogan_gladen(measured.rate, share.n / share.effect, errors.recall, errors.specificity, LEVEL)
        yield Corrected(model, measured, ShareFigure(None, 0.0, 1.0) if found is None else _figure(found), not enough)


def agreement_blocks(found: Agreement) -> Iterator[Block]:
    """The tables of agreement."""
    if not found.conversations:
        yield Text(
            id="agreement",
            title="Agreement with labels",
            lines=["No conversation has a label for every message of its sides, so nothing can be compared."],
            brief=True,
        )
        return
    how = (
        f"{numbers.plural(found.conversations, 'conversation')} with {found.messages:,} labelled messages and "
        f"{found.sides:,} sides"
        + (", weighted by the inverse of the probability that a conversation was drawn" if found.weighted else "")
        + (f"; readers were unsure of {found.unsure:,} messages" if found.unsure else "")
    )
    if found.represented is not None and found.represented < found.scorable:
        yield Text(
            id="agreement-part",
            title="Labels for a part of the conversations",
            lines=[
                f"The labelled conversations stand for {found.represented:,} of {found.scorable:,}. The others are of "
                "strata or sources without labels, and agreement and corrected rates do not hold for them."
            ],
            brief=True,
        )
    intervals = (
        f"{LEVEL:.0%} intervals are Wilson's, or exact for small samples, at the effective sample size, which follows "
        "from a bootstrap over conversations. Those of kappa are percentiles of the same bootstrap."
    )
    yield Table(
        id="agreement-classes",
        title="Agreement with labels, by message",
        part="findings",
        brief=True,
        columns={"class": "text", **_COUNTS, "precision": "share", "recall": "share"},
        rows=[(each.name, *_counts(each), _cell(each.precision), _cell(each.recall)) for each in found.classes],
        caption=f"{how}. Declared includes confirmed, mentioned includes denied. Precision: the share of findings that "
        f"have this label. Recall: the share of labels that are found. {intervals}",
    )
    yield Table(
        id="agreement-tiers",
        title="Agreement with labels, by side",
        part="findings",
        brief=True,
        columns={"tier": "text", **_COUNTS, "precision": "share", "recall": "share", "kappa": "number"},
        rows=[
            (each.name, *_counts(each), _cell(each.precision), _cell(each.recall), _cell(each.kappa))
            for each in found.tiers
        ],
        caption="Whether a tier says that a side leaked, against whether one of its messages is labelled declared or "
        f"confirmed. Kappa is Cohen's. {intervals}",
    )
    pooled = [each.model for each in found.corrected if each.pooled]
    yield Table(
        id="corrected",
        title="Leak rates, corrected",
        part="findings",
        brief=True,
        columns={"model": "text", "measured": "share", "corrected": "share"},
        rows=[(each.model or "all", estimate(each.measured), _cell(each.corrected)) for each in found.corrected],
        caption=f"Leak rates of the {found.tier} tier, corrected for its recall and specificity on the labelled sides "
        "(Rogan and Gladen; interval by Lang and Reiczigel, with the uncertainty of both). "
        + (
            f"Errors of all models together are used for {', '.join(pooled)}: fewer than {ENOUGH} labelled sides with "
            "a leak, or without one. "
            if pooled
            else ""
        )
        + "Without a value: no leak is labelled, or the errors are too large to correct.",
    )
    if found.readers is not None:
        readers = found.readers
        yield Table(
            id="readers",
            title="Agreement of two readers",
            columns={"messages": "count", "same class": "share", "kappa": "number"},
            rows=[(readers.messages, _cell(readers.agreed), _cell(readers.kappa))],
            caption=f"The first two labels of each message, as classes. All other figures use the first. {intervals}",
        )


_COUNTS = {"labelled": "count", "found": "count", "both": "count"}


def _counts(each: Errors) -> list[Cell]:
    return [each.true, each.found, each.both]


def _cell(figure: ShareFigure) -> Cell:
    return None if figure.value is None else Estimate(figure.value, figure.low, figure.high)
