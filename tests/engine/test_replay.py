"""A trial's program, run again over its journal."""

from __future__ import annotations

from collections.abc import Mapping

from groundswell import Fault, FaultKind, Reply, Trial, program, together
from groundswell.engine.records import Recorded, TrialRow
from groundswell.engine.replay import exchanges
from groundswell.errors import AskFailed
from groundswell.program.conductor import Conductor
from groundswell.program.request import Settlement, fingerprint


@program("transcript/talk", version=1)
async def talk(trial: Trial, spec: str) -> str:
    first = await trial.ask("any/model", spec, label="opening")
    left, right = await together(
        trial.ask("any/model", f"{first.text} left", label="left"),
        trial.ask("any/model", f"{first.text} right", label="right"),
    )
    try:
        return (await trial.ask("any/model", left.text + right.text, label="end")).text
    except AskFailed:
        return "failed"


ROW = TrialRow(1, "k", talk.id, '"hi"', 0)


def journal(answers: Mapping[str, Settlement]) -> dict[str, Recorded]:
    """What the engine would have recorded, as far as there are answers."""
    conductor = Conductor(talk, "hi", "k", 0)
    recorded: dict[str, Recorded] = {}
    waits = conductor.start()
    while waits:
        for wait in waits:
            if wait.path in answers:
                recorded[wait.path] = Recorded(fingerprint(wait.request), answers[wait.path])
                conductor.settle(wait, answers[wait.path])
        waits = conductor.advance()
    return recorded


ANSWERS: dict[str, Settlement] = {
    "0": Reply("one"),
    "1.0/0": Reply("two"),
    "1.1/0": Reply("three"),
    "2": Fault(FaultKind.TIMEOUT, "late"),
}


def test_every_exchange_in_the_order_of_the_program() -> None:
    found = exchanges(talk, ROW, 0, journal(ANSWERS))
    assert [(exchange.path, exchange.label, exchange.settlement) for exchange in found] == [
        ("0", "opening", ANSWERS["0"]),
        ("1.0/0", "left", ANSWERS["1.0/0"]),
        ("1.1/0", "right", ANSWERS["1.1/0"]),
        ("2", "end", ANSWERS["2"]),
    ]


def test_an_unfinished_trial_ends_with_what_it_waits_for() -> None:
    found = exchanges(talk, ROW, 0, journal({path: ANSWERS[path] for path in ("0", "1.1/0")}))
    assert [(exchange.path, exchange.settlement) for exchange in found] == [
        ("0", ANSWERS["0"]),
        ("1.0/0", None),
        ("1.1/0", ANSWERS["1.1/0"]),
    ]


def test_what_a_changed_program_does_not_ask_comes_last() -> None:
    recorded = journal(ANSWERS)
    recorded["1.0/0"] = Recorded(b"another", Reply("other"), 7.0)
    found = exchanges(talk, ROW, 0, recorded)
    assert [(exchange.path, exchange.request is None) for exchange in found] == [
        ("0", False),
        ("1.0/0", False),
        ("1.1/0", False),
        ("1.0/0", True),
        ("2", True),
    ]
    assert (found[1].settlement, found[1].seconds) == (None, None)
    assert (found[3].settlement, found[3].seconds) == (Reply("other"), 7.0)


def test_exchanges_have_the_seconds_of_the_journal() -> None:
    recorded = journal(ANSWERS)
    recorded["0"] = recorded["0"]._replace(seconds=1.5)
    expected = [1.5] + [None] * (len(ANSWERS) - 1)
    assert [exchange.seconds for exchange in exchanges(talk, ROW, 0, recorded)] == expected
    assert [exchange.seconds for exchange in exchanges(None, ROW, 0, recorded)] == expected


def test_without_the_program_the_replies_alone() -> None:
    found = exchanges(None, ROW, 0, journal(ANSWERS))
    assert [exchange.settlement for exchange in found] == list(ANSWERS.values())
    assert all(exchange.request is None for exchange in found)
