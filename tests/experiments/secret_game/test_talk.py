"""The rules on labelled conversations that nobody looked at while they were written: bench/talk/held_out.jsonl."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundswell.experiments.secret_game.agreement import Labelled, agreement_of
from groundswell.experiments.secret_game.conversations import by_secrets
from groundswell.experiments.secret_game.modes import Points
from groundswell.experiments.secret_game.scored import examined, talk_of
from groundswell.experiments.secret_game.tally import Tally
from groundswell.experiments.secret_game.transcript_files import read_files

TALK = Path(__file__).parents[3] / "bench" / "talk" / "held_out.jsonl"


@pytest.mark.slow
def test_rules_agree_with_labels() -> None:
    conversations = read_files([TALK], labels=True)
    tally, labelled = Tally("declared", Points()), []
    for number, block, each in by_secrets(conversations):
        talk = talk_of(each, number, block)
        labelled.append(Labelled(talk, examined(talk), each))
        tally.add(talk, labelled[-1].played)
    tally.close()
    found = {each.name: each for each in agreement_of(labelled, conversations, tally, seed=0).classes}
    assert found["declared"].true > 190
    for name, precision, recall in (("declared", 0.92, 0.82), ("bluff", 0.88, 0.73), ("mentioned", 0.95, 0.95)):
        assert found[name].both / found[name].found >= precision
        assert found[name].both / found[name].true >= recall
