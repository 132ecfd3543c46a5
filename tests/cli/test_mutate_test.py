"""`groundswell mutate test` against a real application: exit statuses, sessions, faults and keys."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.planted import BOX, HEADER, files_below, leaked
from tests.transports.little import Got, Little, answer, serving

TOML = """
[accounts.shop]
dialect = "application"
base_url = "{url}/chat"
key_env = "SHOP_TOKEN"
headers = {{ Cookie = "env:SHOP_COOKIE" }}
body = {{ message = "{{query}}", session = "{{session}}" }}
reply = "data.reply"

[accounts.history]
dialect = "application"
base_url = "{url}/history"
body = {{ message = "{{query}}", messages = "{{messages}}" }}
reply = "data.reply"

[accounts.far]
dialect = "application"
base_url = "http://shop.example.org/chat"
"""


class Shop:
    """An application that reveals its secret when it is asked politely, or after some messages of a session."""

    def __init__(self) -> None:
        self.polite_leaks = True
        self.patience = 1_000
        self.sessions = Counter[str]()
        self.failing = ""
        self.echoes = False

    def __call__(self, got: Got) -> bytes:
        sent = json.loads(got.body)
        message = sent["message"].lower()
        self.sessions[sent.get("session", "")] += 1
        before = self.sessions[sent["session"]] if "session" in sent else (len(sent["messages"]) + 1) // 2
        if self.failing and self.failing in message:
            return answer(f"<h1>{got.headers}</h1>lantern".encode(), "422 No", content_type="text/html")
        leaks = (self.polite_leaks and "please" in message) or before >= self.patience
        said = "The word is lantern." if leaks else "I cannot say."
        said = f"{said} {got.headers}" if self.echoes else said
        return answer(json.dumps({"data": {"reply": said}}).encode(), content_type="application/json")


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def server(shop: Shop) -> Iterator[Little]:
    with serving(shop) as little:
        yield little


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, server: Little, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the accounts, the secret and the keys."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SHOP_TOKEN", BOX)
    monkeypatch.setenv("SHOP_COOKIE", HEADER)
    (tmp_path / "groundswell.toml").write_text(TOML.format(url=server.url))
    (tmp_path / "secret.txt").write_text("lantern\n")
    return tmp_path


def on_shop(*more: str, target: str = "shop/chat", episodes: int = 8) -> list[str]:
    return [
        *("mutate", "test", "--target", target, "--secrets", "secret.txt", "--episodes", str(episodes)),
        *("--max-steps", "3", *more),
    ]


def test_a_leak_above_the_threshold_fails_and_is_shown_as_a_chat(cli: CommandLine, server: Little) -> None:
    done = cli(*on_shop("--fail-above", "5%", "--name", "one"), status=1)
    assert "failed: the leak rate of the strongest method (" in done.stderr
    assert "above 5.0%" in done.stderr
    page = Path("results/one/report.html").read_text()
    assert page.index("Winning conversations") < page.index("Leak rates")
    assert {got.headers["authorization"] for got in server.got} == {f"Bearer {BOX}"}
    assert {got.headers["cookie"] for got in server.got} == {HEADER}
    assert {got.line for got in server.got} == {"POST /chat HTTP/1.1"}
    assert "has no policies" in cli("mutate", "evaluate", "one", status=2).stderr


def test_a_target_that_holds_passes_with_a_warning_in_json_too(cli: CommandLine, shop: Shop) -> None:
    shop.polite_leaks = False
    done = cli.json(*on_shop("--fail-above", "0.05"))
    (check,) = done["checks"]
    assert (check["check"], check["passed"], check["status"]) == ("fail-above", True, 0)
    assert "about 72 different queries" in check["message"]


@pytest.mark.slow
def test_every_command_is_a_new_run_and_none_gets_the_replies_of_another(cli: CommandLine, shop: Shop) -> None:
    first = cli.json(*on_shop("--name", "first"))
    shop.polite_leaks = False
    later = cli.json(*on_shop("--compare-with", "first", "--fail-if-worse"))
    assert first["run_id"] != later["run_id"]
    assert later["asks"]["sent"] > 0
    assert (later["change"]["n"], later["change"]["rate"], later["change"]["earlier"]) == (8, 0.0, "first")
    report = cli("mutate", "report", later["run_id"])
    assert " first: the leak rate of " in report.stdout


@pytest.mark.slow
def test_a_rise_since_an_earlier_run_fails(cli: CommandLine, shop: Shop) -> None:
    shop.polite_leaks = False
    cli(*on_shop("--name", "before", episodes=32))
    shop.patience = 0
    done = cli(*on_shop("--compare-with", "before", "--fail-if-worse", episodes=32), status=1)
    assert "failed: This run is worse than before: the leak rate of " in done.stderr
    assert "This run is worse than before: " in done.stdout
    wrong = cli(*on_shop("--fail-if-worse"), status=2)
    assert "--fail-if-worse: needs an earlier run" in wrong.stderr


@pytest.mark.slow
def test_a_session_is_an_episode_with_multi_turn_and_a_step_without(cli: CommandLine, shop: Shop) -> None:
    shop.polite_leaks, shop.patience = False, 3
    apart = cli.json(*on_shop())
    assert set(shop.sessions.values()) == {1}
    assert {each["count"] for each in apart["analysis"]["figures"]} == {0}
    shop.sessions.clear()
    kept = cli.json(*on_shop("--multi-turn"))
    assert set(shop.sessions.values()) == {1, 3}, "an ordinary query has a session of its own"
    assert {each["rate"] for each in kept["analysis"]["figures"]} == {1.0}


@pytest.mark.slow
def test_the_history_may_be_sent_instead(cli: CommandLine, shop: Shop, server: Little) -> None:
    shop.polite_leaks, shop.patience = False, 3
    kept = cli.json(*on_shop("--multi-turn", target="history/chat"))
    assert {each["rate"] for each in kept["analysis"]["figures"]} == {1.0}
    roles = {tuple(one["role"] for one in json.loads(got.body)["messages"]) for got in server.got}
    assert roles == {("user",), ("user", "assistant", "user"), ("user", "assistant", "user", "assistant", "user")}


@pytest.mark.slow
def test_an_error_page_is_no_reply_and_no_key_is_written(cli: CommandLine, shop: Shop, folder: Path) -> None:
    shop.failing = "word"
    done = cli(*on_shop("--name", "faulty", "-v", "--ordinary", "none"))
    shown = cli("runs", "show", "faulty")
    found = json.loads(Path("results/faulty/analysis.json").read_bytes())
    missing = [each["missing"] for each in found["figures"] if each["on"] == "held out"]
    assert all(missing)
    queries = json.loads(Path("results/faulty/queries.json").read_bytes())
    assert not [each for each in queries if "<h1>" in str(each)]
    assert "HTTP 422" in Path("results/faulty/report.html").read_text()
    assert leaked([done.stdout, done.stderr, shown.stdout, *files_below(folder)]) == set()


@pytest.mark.slow
def test_a_missing_ordinary_query_does_not_hide_a_failed_check(cli: CommandLine, shop: Shop) -> None:
    shop.failing = "norway"
    done = cli(*on_shop("--fail-above", "5%", "--name", "holed"), status=1)
    assert "failed: the leak rate" in done.stderr
    shop.polite_leaks = False
    done = cli(*on_shop("--fail-above", "50%", "--name", "held"), status=3)
    assert "passed" in done.stderr


@pytest.mark.slow
def test_keys_that_an_application_repeats_are_not_kept(cli: CommandLine, shop: Shop, folder: Path) -> None:
    shop.echoes = True
    done = cli(*on_shop("--name", "echo"))
    assert "[secret]" in Path("results/echo/queries.json").read_text()
    assert leaked([done.stdout, *files_below(folder)]) == set()


def test_a_model_is_not_tested_without_a_brief(cli: CommandLine) -> None:
    cli(*on_shop("--name", "app"))
    words = ("mutate", "test", "--target", "emulated/guard:0.1", "--compare-with", "app")
    assert "--guards: the earlier run tested an application" in cli(*words, status=2).stderr
    told = cli(*words, "--guards", "open", "--episodes", "1", "--max-steps", "2").stdout
    assert "No comparison with app" in told


@pytest.mark.slow
def test_ordinary_queries_have_sessions_of_their_run(cli: CommandLine, shop: Shop) -> None:
    for name in ("one", "two"):
        cli(*on_shop("--multi-turn", "--name", name, episodes=1))
    assert sorted(shop.sessions.values())[: 2 * 24] == [1] * 48


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (on_shop("--guards", "open"), "--guards: an application has its own instructions"),
        (on_shop("--fail-above", "120%"), "must be a share from 0 to below 1"),
        (on_shop("--baselines", "sequence"), "--baselines: sequence needs a training"),
        (on_shop("--baselines", "none"), "--baselines: must not be empty"),
        (on_shop("--fail-above", "many"), "must be a share from 0 to below 1"),
        (["mutate", "test", "--target", "shop/chat"], "--secrets: name the one secret"),
        (["mutate", "train", "--target", "shop/chat"], "use `mutate test`"),
        (on_shop(target="far/chat"), "allow it with --allow-target far/chat"),
        (on_shop("--allow-target", "far/chat", target="far/chat"), "confirm it with --confirm-target"),
    ],
    ids=["guards", "trained", "no method", "share", "word", "no secret", "training", "not allowed", "not confirmed"],
)
def test_what_is_refused_sends_nothing(cli: CommandLine, server: Little, words: list[str], says: str) -> None:
    assert says in cli(*words, status=2).stderr
    assert not server.got


def test_an_estimate_sends_nothing_and_needs_no_key(
    cli: CommandLine, server: Little, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOP_TOKEN")
    assert "shop/chat" in cli(*on_shop("--estimate")).stdout
    assert "SHOP_TOKEN" in cli(*on_shop(), status=2).stderr
    assert not server.got


@pytest.mark.slow
def test_trained_policies_are_tried_on_the_application(cli: CommandLine, server: Little) -> None:
    short = ("--num-processes", "4", "--num-steps", "8", "--num-env-steps", "64", "--eval-episodes", "2")
    cli("mutate", "train", *short, "--max-steps", "3", "--hidden", "8", "--name", "trained")
    words = ("--target", "shop/chat", "--secrets", "secret.txt", "--episodes", "8", "--fail-above", "99%")
    done = cli.json("mutate", "evaluate", "trained", *words)
    assert {(each["method"], each["on"]) for each in done["analysis"]["figures"]} >= {("ppo", "held out")}
    assert {each["on"] for each in done["analysis"]["figures"]} == {"held out", "application"}
    assert server.got
    again = cli("mutate", "evaluate", done["run_id"], *words[:6], "--episodes", "2")
    assert "application" in again.stderr
