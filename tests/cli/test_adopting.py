"""`groundswell batches adopt`: waves whose batch their run does not know, or cannot see."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundswell.store.journal import Store
from tests.cli.batch_office import A_DAY, OFTEN, Office

LOST = ["batches", "adopt", "duels", "--lost"]


def test_a_wave_whose_receipt_was_lost_is_found(office: Office) -> None:
    run = office.leave("duels")
    batch = office.batches()["openai"]["batch"]
    office.lose_receipt("openai")
    told = office("batches", "adopt", "duels")
    assert told.stdout == f"run duels, wave 1: batch {batch}: identified by its requests\n"
    assert f"to resume: groundswell runs resume {run}" in told.stderr
    assert office.batches()["openai"]["batch"] == batch
    assert "the batch of every wave in flight is already known" in office("batches", "adopt", "duels").stdout
    office.finish_cheaply(run)


def test_one_of_anthropics_cannot_be_told_before_it_has_ended(office: Office) -> None:
    run = office.leave("duels")
    batch = office.batches()["anthropic"]["batch"]
    office.lose_receipt("anthropic")
    (wave,) = office.json("batches", "adopt", "duels", status=3)["waves"]
    assert (wave["what"], wave["batch"]) == ("undecided", None)
    assert "Resuming the run keeps searching" in wave["note"]
    office.emulator.advance(A_DAY)
    (wave,) = office.json("batches", "adopt", "duels")["waves"]
    assert (wave["what"], wave["batch"]) == ("adopted", batch)
    office.finish_cheaply(run)


def test_a_wave_that_was_never_made(office: Office) -> None:
    office.leave("duels")
    office.lose_receipt("openai")
    office.change("UPDATE waves SET sent_at = sent_at - 900000")
    office.emulator.reset()
    (wave,) = office.json("batches", "adopt", "duels", "1", status=3)["waves"]
    assert (wave["what"], wave["note"]) == (
        "absent",
        "the account has no such batch; resuming the run sends its requests again",
    )
    office.change_owner("openai")
    (wave,) = office.json("batches", "adopt", "duels", "1", status=3)["waves"]
    assert "use the key that the wave was sent with, or mark the wave as lost with --lost" in wave["note"]


@pytest.mark.sampled
@pytest.mark.parametrize("account", ["openai", "anthropic"])
@pytest.mark.parametrize("ended", [False, True], ids=["in flight", "ended"])
def test_a_batch_that_somebody_names(office: Office, account: str, ended: bool) -> None:
    run = office.leave("duels")
    batch = office.batches()[account]["batch"]
    office.lose_receipt(account)
    office.change_owner(account)
    if ended:
        office.emulator.advance(A_DAY)
    (wave,) = office.json("batches", "adopt", "duels", batch)["waves"]
    assert (wave["what"], wave["batch"]) == ("adopted", batch)
    sure = "its metadata names" if account == "openai" else "its results match" if ended else "not verified"
    assert sure in wave["note"]
    assert office.batches()[account]["problem"] is None
    office.finish_cheaply(run)


def test_another_key_of_the_same_organisation(office: Office) -> None:
    run = office.leave("duels")
    office.change_owner("openai")
    assert f"groundswell batches adopt {run}" in office("runs", "resume", run, status=2).stderr
    assert "wave 1: batch batch_" in office("batches", "adopt", "duels").stdout
    office.finish_cheaply(run)


def test_another_key_of_another_organisation(office: Office) -> None:
    office.leave("duels")
    office.variables["OPENAI_API_KEY"] = "sk-of-somebody-else"
    assert "use the key that sent it" in office("batches", "adopt", "duels", status=1).stderr
    assert "sent with a different key" in office.batches()["openai"]["problem"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("account", "which", "why"),
    [
        ("openai", "none", "sees no batch batch_none"),
        ("openai", "theirs", "its metadata names run"),
        ("anthropic", "larger", "it has 3 requests, but the wave has 2"),
        ("anthropic", "mine", "it belongs to other/2"),
        ("anthropic", "theirs", "its results belong to other requests"),
    ],
    ids=["unknown", "says so", "size", "another wave's", "results"],
)
def test_a_batch_that_is_another_one(office: Office, tmp_path: Path, account: str, which: str, why: str) -> None:
    office.leave("duels")
    office.leave("other")
    theirs, larger = Office(tmp_path / "next door", office.emulator), Office(tmp_path / "upstairs", office.emulator)
    theirs.leave("theirs")
    larger.leave("larger", talks=6)
    mine = next(row for row in office.json("batches", "list", "--run", "other")["batches"] if row["account"] == account)
    places = {"theirs": theirs, "larger": larger}
    batch = places[which].batches()[account]["batch"] if which in places else mine["batch"]
    number = office.json("batches", "list", "--run", "duels")["batches"]
    wave = next(str(row["wave"]) for row in number if row["account"] == account)
    office.change("UPDATE waves SET receipt = NULL WHERE account = ? AND id >> 32 = 1", account)
    office.emulator.advance(A_DAY)
    told = office("batches", "adopt", "duels", wave, "batch_none" if which == "none" else batch, status=1).stderr
    assert why in told
    assert which == "theirs" or "batches with 2 requests: " in told
    assert [row["batch"] for row in office.json("batches", "list", "--run", "duels")["batches"]].count(None) == 1


def test_a_wave_that_is_given_up_is_sent_again(office: Office) -> None:
    run = office.leave("duels")
    office.lose_receipt("openai")
    told = office(*LOST, status=1).stderr
    assert "Mark wave 1 of run duels as lost?" in told
    assert "pay for them twice" in told
    assert office.batches()["openai"]["batch"] is None
    (wave,) = office.json(*LOST, "--yes")["waves"]
    assert (wave["what"], wave["note"]) == ("given_up", "2 requests will be sent again")
    assert list(office.batches()) == ["anthropic"]
    office.emulator.advance(A_DAY)
    found = office.json("runs", "resume", run, *OFTEN, "--via", "live")
    assert (found["status"], found["asks"]["resent"], found["asks"]["sent"]) == ("completed", 2, 6)
    assert office.books["paid_again"] == 2


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["none"], 1, "no run 'none'"),
        (["duels", "9"], 2, "has no wave 9 in flight; in flight: 1, 2"),
        (["duels", "batch_1"], 2, "the batch of every wave in flight is already known"),
    ],
    ids=["run", "wave", "batch"],
)
def test_adopt_with_wrong_words(office: Office, words: list[str], status: int, told: str) -> None:
    office.leave("duels")
    assert told in office("batches", "adopt", *words, status=status).stderr


def test_a_batch_must_be_given_its_wave_where_there_are_several(office: Office) -> None:
    office.leave("duels")
    office.lose_receipt("openai")
    office.lose_receipt("anthropic")
    assert (
        "several waves without a known batch (1, 2)" in office("batches", "adopt", "duels", "batch_1", status=2).stderr
    )


def test_a_wave_that_has_ended_needs_no_adopting(office: Office) -> None:
    run = office.leave("duels")
    office.emulator.advance(A_DAY)
    office.resume(run)
    assert "wave 1 has ended" in office("batches", "adopt", "duels", "1", status=2).stderr


def test_a_run_at_work_is_not_touched(office: Office) -> None:
    office.leave("duels")
    store = Store(office.folder / "runs.db")
    lock = store.runs.lock(store.runs.get("duels"))
    try:
        assert "is open in process" in office("batches", "adopt", "duels", "1", "--lost", "--yes", status=1).stderr
        assert len(office.batches()) == 2
        assert "another process is working on its run" in office("batches", "show", "duels/1").stderr
    finally:
        lock.release()
        store.close_reading()
