"""What people get wrong: one message that says what, the right exit status, and a corrected command that pays once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from groundswell.emulator.latency import Latency
from groundswell.emulator.server import Threaded, running
from groundswell.emulator.settings import Settings
from tests.shows.desk import ANTHROPIC, OPENAI, Desk
from tests.transports.scene import KEY

ROWS = 12
MAP = ["map", "t.csv", "-p", "Say {word}"]
ASK = ["ask", "Say hello."]
BOTH = f"{ANTHROPIC},{OPENAI}"


@pytest.fixture(scope="module")
def _strict() -> Iterator[Threaded]:
    """An emulator that accepts one key alone."""
    with running(Settings(latency=Latency(0.002), keys={"us": KEY})) as emulator:
        yield emulator


@pytest.fixture
def desk(tmp_path: Path, _strict: Threaded) -> Desk:
    _strict.reset()
    return Desk(tmp_path / "desk", _strict, ROWS)


def told(desk: Desk, *words: str, status: int) -> str:
    """The one error of a command."""
    result = desk(*words, status=status)
    assert "Traceback" not in result.output
    (error,) = [block for block in result.stderr.split("\n") if block.startswith("error: ")]
    return error


def check_works(desk: Desk, words: list[str], asks: int) -> None:
    """The corrected command does everything, and with what went before pays for each reply once."""
    desk(*words)
    assert (desk.books["requests"], desk.books["paid_again"]) == (asks, 0)
    if words[0] == "map":
        assert {row["status"] for row in desk.rows} == {"usable"}
        assert [row["id"] for row in desk.rows] == sorted((row["id"] for row in desk.rows), key=int)
    paid = desk.books
    desk(*words)
    assert desk.books == paid


class Flaw(NamedTuple):
    """What a file holds, and what is said of it."""

    name: str
    content: bytes
    words: str


FLAWS = {
    "ragged": Flaw("t.csv", b"id,word\n1,one\n2,two,three\n", "t.csv, line 3: it has 3 cells, but the header has 2"),
    "open quote": Flaw("t.csv", b'id,word\n1,"one\n2,two\n', "check its quotes"),
    "bad JSON line": Flaw("t.jsonl", b'{"word": "one"}\n{"word": }\n', "t.jsonl, line 2, character 10: invalid JSON"),
    "not UTF-8": Flaw("t.csv", b"id,word\n1,one\n2,caf\xe9\n", "t.csv, line 3: byte 0xe9 is not valid UTF-8"),
    "empty": Flaw("t.csv", b"", "t.csv: the file is empty"),
    "no rows": Flaw("t.csv", b"id,word\n", "t.csv: the table has no rows"),
    "not there": Flaw("u.csv", b"", "u.csv: No such file"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("flaw", FLAWS.values(), ids=FLAWS.keys())
def test_a_malformed_file(flaw: Flaw, desk: Desk) -> None:
    good = (desk.folder / "t.csv").read_text()
    if flaw.content or flaw.name == "t.csv":
        (desk.folder / flaw.name).write_bytes(flaw.content)
    words = ["map", flaw.name, "-p", "Say {word}", "-m", OPENAI]
    assert flaw.words in told(desk, *words, status=2)
    assert (desk.books["received"], desk.runs) == (0, [])
    assert not list(desk.folder.glob("*.replies.*"))
    (desk.folder / "t.csv").write_text(good)
    check_works(desk, [*MAP, "-m", OPENAI], ROWS)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("wrong", "right", "words"),
    [
        ([*MAP[:3], "Say {wrod}"], MAP, "-p: the data has no column 'wrod'; did you mean {word}?"),
        ([*MAP, "--check", "equals {Word}"], MAP, "--check equals {Word}: the data has no column 'Word'"),
        ([*MAP, "-m", "opnai/gpt-4o-mini"], MAP, "there is no provider or account 'opnai'; did you mean 'openai'?"),
        ([*ASK, "-m", "opnai/gpt-4o-mini"], ASK, "there is no provider or account 'opnai'; did you mean 'openai'?"),
        ([*MAP, "-m", "gpt-9o-mini"], MAP, "'gpt-9o-mini'"),
        ([*ASK, "-m", "gpt-9o-mini"], ASK, "'gpt-9o-mini'"),
    ],
    ids=["a column", "a column of a check", "a provider", "a provider, ask", "no provider", "no provider, ask"],
)
def test_a_misspelt_name_of_ours(wrong: list[str], right: list[str], words: str, desk: Desk) -> None:
    assert words in told(desk, *wrong, "-m", OPENAI, status=2)
    assert (desk.books["received"], desk.runs) == (0, [])
    assert not list(desk.folder.glob("*.replies.*"))
    check_works(desk, [*right, "-m", OPENAI], ROWS if right is MAP else 1)


@pytest.mark.parametrize(("command", "each"), [(MAP, ROWS), (ASK, 1)], ids=["map", "ask"])
class TestKeysAndModels:
    """What only the provider can tell. The other model's replies are kept, and free next time."""

    def test_a_missing_key(self, command: list[str], each: int, desk: Desk) -> None:
        """At the provider's own address, where there is no doing without."""
        address = desk.variables.pop("OPENAI_BASE_URL")
        key = desk.variables.pop("OPENAI_API_KEY")
        words = [*command, "-m", BOTH]
        assert "account 'openai' has no key: set OPENAI_API_KEY" in told(desk, *words, status=2)
        assert (desk.books["received"], desk.runs) == (0, [])
        assert not list(desk.folder.glob("*.replies.*"))
        desk.variables |= {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": address}
        check_works(desk, words, 2 * each)

    def test_a_missing_key_for_a_server_that_may_need_none(self, command: list[str], each: int, desk: Desk) -> None:
        key = desk.variables.pop("OPENAI_API_KEY")
        words = [*command, "-m", OPENAI]
        assert "no key is set for this account, so none was sent: set OPENAI_API_KEY" in told(desk, *words, status=1)
        desk.variables["OPENAI_API_KEY"] = key
        check_works(desk, words, each)

    def test_a_wrong_key(self, command: list[str], each: int, desk: Desk) -> None:
        desk.variables["OPENAI_API_KEY"] = "sk-of-somebody-else"
        words = [*command, "-m", BOTH]
        error = told(desk, *words, status=1 if command is MAP else 3)
        assert "openai: HTTP 401" in error
        assert "check the key in OPENAI_API_KEY" in error
        assert "somebody-else" not in error
        assert desk.books["requests"] <= each
        assert [run["status"] for run in desk.runs] == ["failed"]
        desk.variables["OPENAI_API_KEY"] = KEY
        check_works(desk, words, 2 * each)

    def test_a_run_with_a_wrong_key_can_be_resumed(self, command: list[str], each: int, desk: Desk) -> None:
        desk.variables["OPENAI_API_KEY"] = "sk-of-somebody-else"
        told(desk, *command, "-m", OPENAI, status=1)
        desk.variables["OPENAI_API_KEY"] = KEY
        (run,) = desk.runs
        desk("runs", "resume", run["run_id"])
        assert (desk.books["requests"], desk.books["paid_again"]) == (each, 0)
        assert [run["status"] for run in desk.runs] == ["completed"]

    @pytest.mark.sampled
    @pytest.mark.parametrize(
        "misspelt", ["openai/gtp-4o-mini", "anthropic/cluade-3-5-haiku-latest"], ids=["openai", "anthropic"]
    )
    def test_a_misspelt_model(self, misspelt: str, command: list[str], each: int, desk: Desk) -> None:
        right = OPENAI if misspelt.startswith("openai/") else ANTHROPIC
        other = ANTHROPIC if right == OPENAI else OPENAI
        error = told(desk, *command, "-m", f"{other},{misspelt}", status=1 if command is MAP else 3)
        assert "HTTP 404" in error
        assert f"Check the model name {misspelt}." in error
        assert desk.books["requests"] <= each
        check_works(desk, [*command, "-m", f"{other},{right}"], 2 * each)


def test_a_misspelt_model_stops_a_long_run_at_once(desk: Desk) -> None:
    desk = Desk(desk.folder, desk.emulator, 2000)
    told(desk, *MAP, "-m", "openai/gtp-4o-mini", "--max-concurrent", "8", status=1)
    assert desk.books["received"] <= 8
    assert {row["status"] for row in desk.rows} == {"pending"}


@pytest.mark.sampled
@pytest.mark.parametrize("command", [MAP, ASK], ids=["map", "ask"])
def test_a_schema_that_a_model_will_not_follow(command: list[str], desk: Desk) -> None:
    """Nothing is lost: what it wrote is in the run's record, and another model's rows are usable."""
    words = [*command, "-m", f"openai/refuser,{OPENAI}", "--schema", "schema.json"]
    desk(*words, status=3)
    (run,) = desk.runs
    shown = desk("runs", "show", run["run_id"]).stdout
    assert "x malformed_reply, for example trial" in shown
    wrote = shown.rpartition("the model wrote: ")[2].splitlines()[0].strip()
    assert wrote
    if command is MAP:
        refused = [row for row in desk.rows if row["model"] == "openai/refuser"]
        assert {row["status"] for row in refused} == {"missing"}
        assert all(row["fault"].startswith("malformed_reply: ") for row in refused)
        assert {row["status"] for row in desk.rows if row not in refused} == {"usable"}
    key = shown.partition("for example trial ")[2].partition(":")[0]
    assert wrote in desk("runs", "show", run["run_id"], "--trial", key).stdout
    paid = desk.books
    assert paid["paid_again"] == 0
    desk(*words, status=3)
    assert desk.books == paid if command is MAP else desk.books["paid_again"] == 0


def test_when_no_model_follows_a_schema_the_run_has_failed(desk: Desk) -> None:
    words = [*MAP, "-m", "openai/refuser", "--schema", "schema.json"]
    assert "no trial has a result" in told(desk, *words, status=1)
    check_works(desk, [*MAP, "-m", OPENAI, "--schema", "schema.json"], 3 * ROWS)
