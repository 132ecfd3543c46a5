"""No key, header or password appears in anything that a run writes, prints, logs, raises or shows."""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import groundswell
from groundswell import RetryPolicy, Run, RunOptions, Trial, program
from groundswell.engine.events import Event
from groundswell.providers.accounts import config
from groundswell.transports import live
from groundswell.trust import users_trust
from tests import planted
from tests.patience import PATIENCE
from tests.planted import ANTHROPIC, BOX, HEADER, MODELS, OPENAI, PROXY, URL, files_below, leaked, parrot
from tests.transports.little import Little, answer, closed_port, serving

EXPERIMENT = Path(__file__).parent / "cli" / "cli_experiment.py"
ACCOUNTS = """
[accounts.box]
dialect = "openai"
base_url = "{url}/v1"
key_env = "BOX_KEY"
headers = {{ X-Pass = "env:BOX_PASS" }}

[accounts.far]
dialect = "openai"
base_url = "http://far.invalid/v1"
key_env = "BOX_KEY"
headers = {{ X-Pass = "env:BOX_PASS" }}
proxy = "env:BOX_PROXY"
"""
QUICK = RunOptions(retry=RetryPolicy(attempts=2, first_wait=0.001, longest_wait=0.002, patience=0.01))


class Asking(msgspec.Struct, frozen=True):
    """A model, and whether to raise an error afterwards."""

    model: str
    broken: bool = False


@program("tests/parroted")
async def parroted(trial: Trial, spec: Asking) -> str:
    """Send a request, and raise an error if the spec says so."""
    reply = await trial.ask(spec.model, "hello")
    if spec.broken:
        raise LookupError(f"broken after {reply.text}")
    return reply.text


async def driver(run: Run, settings: Asking) -> None:
    """Raise the error of a trial."""
    outcome = await run.submit(parroted, settings)
    assert outcome.result is not None, f"missing: {outcome.fault}"


@pytest.fixture
def server() -> Iterator[Little]:
    with serving(parrot) as little:
        yield little


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, server: Little, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, with secrets in the environment."""
    (tmp_path / "groundswell.toml").write_text(ACCOUNTS.format(url=server.url))
    variables = {
        "OPENAI_API_KEY": OPENAI,
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "ANTHROPIC_API_KEY": ANTHROPIC,
        "ANTHROPIC_BASE_URL": server.url,
        "BOX_KEY": BOX,
        "BOX_PASS": HEADER,
        "BOX_PROXY": f"http://me:{PROXY}@127.0.0.1:{server.port}",
        "HOME": str(tmp_path),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    users_trust().add_host("http://far.invalid", ["BOX_KEY", "BOX_PASS"])  # named by a file of the folder
    return tmp_path


class Recorder(logging.Handler):
    """Every log record, with all its attributes."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(f"{self.format(record)} {record.__dict__}")


@pytest.fixture
def said() -> Iterator[list[str]]:
    """Everything that is logged, by any logger."""
    recorder, root = Recorder(), logging.getLogger()
    before = root.level
    root.addHandler(recorder)
    root.setLevel(logging.DEBUG)
    yield recorder.said
    root.removeHandler(recorder)
    root.setLevel(before)


def told(error: BaseException) -> str:
    """An error with its traceback and all local variables."""
    shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    return "".join(shown.format()) + repr(error) + str(error.args)


def shown(thing: object) -> Iterator[str | bytes]:
    """Texts and copies that can be made of an object without reading its secrets."""
    yield repr(thing)
    yield str(thing)
    for write in (pickle.dumps, msgspec.json.encode, msgspec.to_builtins):
        try:
            written = write(thing)
        except Exception as error:  # noqa: BLE001  refusing is correct
            yield told(error)
        else:
            yield written if isinstance(written, bytes) else repr(written)


def carried_out(model: str, *, broken: bool = False, options: RunOptions = QUICK) -> list[str | bytes]:
    """Run the driver on a model. Return all that was seen: events, the error, the engine, files during the run."""
    seen: list[str | bytes] = []

    def keep(event: Event) -> None:
        seen.extend([repr(event), msgspec.json.encode(event)])

    async def main() -> None:
        async with groundswell.open("runs.db", options=options, listeners=[keep]) as engine:
            try:
                await engine.drive(driver, Asking(model, broken), name=model)
            except Exception as error:  # noqa: BLE001  whatever it is, it is searched
                seen.append(told(error))
            router: Any = engine._router
            things = [engine, router, *router._live.values(), *engine.runs, engine.figures, router._accounts]
            things += [one.account for one in router._live.values()]
            things += [one._http for one in router._live.values()]
            seen.extend(text for thing in things for text in shown(thing))
            seen.extend(files_below(Path.cwd()))

    asyncio.run(main())
    return [*seen, *files_below(Path.cwd())]


ACCOUNT_MODELS = [f"{account}/{model}" for account in ("openai", "anthropic", "box", "far") for model in MODELS]


def test_the_server_repeats_what_it_is_sent_and_the_search_finds_it(server: Little) -> None:
    """Without this, the other tests would show nothing."""
    carried_out("box/m-400")
    carried_out("far/m-400")
    assert leaked(parrot(got) for got in server.got) >= {BOX, HEADER}
    assert leaked(repr(got.headers) for got in server.got) == {BOX, HEADER, planted.SECRETS[-1]}
    assert leaked([f"...{OPENAI[5:13]}..."]) == {OPENAI}


@pytest.mark.sampled(every=14)
@pytest.mark.parametrize("model", ACCOUNT_MODELS)
def test_faults_that_repeat_the_key(model: str, said: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    seen = carried_out(model)
    assert leaked([*seen, *said, *capfd.readouterr()]) == set()
    assert any(b"TrialEnded" in text for text in seen if isinstance(text, bytes)) or b"RunStopping" in b"".join(
        text for text in seen if isinstance(text, bytes)
    )


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("account", ["openai", "anthropic", "box", "far"])
@pytest.mark.parametrize("status", ["401", "403"])
def test_a_key_that_is_not_accepted(account: str, status: str, said: list[str]) -> None:
    seen = carried_out(f"{account}/m-{status}")
    assert any("the provider rejected the key" in text for text in seen if isinstance(text, str))
    assert leaked([*seen, *said]) == set()


@pytest.mark.sampled
@pytest.mark.parametrize("account", ["openai", "anthropic", "box", "far"])
def test_a_server_that_cannot_be_reached(
    account: str, said: list[str], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setattr(live, "NEVER_ANSWERED", 0.05)
    with closed_port() as port:
        url = f"http://127.0.0.1:{port}"
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        monkeypatch.setenv("BOX_PROXY", f"http://me:{PROXY}@127.0.0.1:{port}")
        (folder / "groundswell.toml").write_text(ACCOUNTS.format(url=url))
        patient = RunOptions(retry=RetryPolicy(first_wait=0.01, longest_wait=0.02))
        seen = carried_out(f"{account}/m", options=patient)
    assert any("no answer from" in text for text in seen if isinstance(text, str))
    assert leaked([*seen, *said]) == set()


def test_a_program_that_breaks(said: list[str], server: Little) -> None:
    server.answering = lambda got: answer(
        b'{"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}', content_type="application/json"
    )
    seen = carried_out("openai/m", broken=True)
    assert any("broken after hi" in text for text in seen if isinstance(text, str))
    assert leaked([*seen, *said]) == set()


def _write_dotenv(text: str) -> None:
    Path(".env").write_text(text)


WRONG: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a password in an address": lambda patch: patch.setenv("OPENAI_BASE_URL", f"http://me:{URL}@127.0.0.1:1/v1"),
    "a password in a list of addresses": lambda patch: patch.setenv("OLLAMA_HOST", f"host,http://me:{URL}@h"),
    "a key in an address": lambda patch: patch.setenv("OPENAI_BASE_URL", f"http://host/v1?key={URL}"),
    "a key of two lines": lambda patch: patch.setenv("OPENAI_API_KEY", f"{OPENAI}\n{BOX}"),
    "a header of two lines": lambda patch: patch.setenv("BOX_PASS", f"{HEADER}\n{BOX}"),
    "a proxy that is none": lambda patch: patch.setenv("BOX_PROXY", f"me:{PROXY}@host"),
    "a proxy that cannot be": lambda patch: patch.setenv("BOX_PROXY", f"http://me:{PROXY}@host:port:0"),
    "a proxy in a variable of ours": lambda patch: patch.setenv("GROUNDSWELL_BOX_PROXY", f"me {PROXY}"),
    "a key in a variable of ours": lambda patch: patch.setenv("GROUNDSWELL_BOX_KEY", BOX),
    "a broken .env": lambda patch: _write_dotenv(f"A='{BOX}\nOPENAI_API_KEY {OPENAI}\n"),
}


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("model", ["openai/m-400", "ollama/m-400", "far/m-400"])
def test_settings_that_are_wrong(wrong: str, model: str, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    WRONG[wrong](monkeypatch)
    seen = carried_out_or_refused(model)
    if wrong == "a broken .env":
        seen = [text for text in seen if not (isinstance(text, bytes) and text.startswith(b"A='"))]
    assert leaked([*seen, *said]) == set()


def carried_out_or_refused(model: str) -> list[str | bytes]:
    """Like `carried_out`. If the accounts cannot be loaded, return that error."""
    seen: list[str | bytes] = []
    try:
        seen += shown(config.load_here())
        seen += [repr(config.load_here().describe())]
        seen += carried_out(model)
    except Exception as error:  # noqa: BLE001  whatever it is, it is searched
        seen.append(told(error))
    return seen


def command(*words: str, status: int | None = None) -> str:
    """The output of a command in a separate process."""
    source = Path(groundswell.__file__).parents[1]
    root = Path(__file__).parents[1]
    ended = subprocess.run(
        [sys.executable, "-m", "groundswell", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{root}"},
    )
    printed = ended.stdout + ended.stderr
    assert status is None or ended.returncode == status, printed
    return printed


@pytest.mark.slow
def test_the_command_line(folder: Path) -> None:
    target = f"{EXPERIMENT}:driver"
    printed = [
        command("run", target, "-v", "--name", "bad", "--set", "model=openai/m-400", "--set", "asks=1"),
        command("run", target, "-v", "--name", "key", "--set", "model=far/m-401"),
        command("run", target, "-v", "--name", "x", "--set", "model=openai/m-400", "--set", "broken=true"),
        command("doctor"),
        command("doctor", "--json"),
        command("runs", "show", "bad"),
        command("runs", "show", "key", "--json"),
        command("cache", "stats"),
    ]
    for form in ("jsonl", "json", "csv"):
        printed.append(command("runs", "export", "bad", "--format", form, "-o", f"bad.{form}", status=0))
    assert "rejected the key" in printed[1]
    assert "Traceback" in printed[2]
    assert {"bad.jsonl", "bad.json", "bad.csv", "groundswell.db"} <= {path.name for path in folder.iterdir()}
    assert leaked([*printed, *files_below(folder)]) == set()


@pytest.mark.slow
def test_the_command_line_with_a_password_in_an_address(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://me:{URL}@127.0.0.1:1/v1")
    told_ = [
        command("run", f"{EXPERIMENT}:driver", "-v", "--set", "model=openai/m"),
        command("doctor", "--json"),
    ]
    assert "OPENAI_BASE_URL" in told_[0]
    assert leaked([*told_, *files_below(folder)]) == set()
