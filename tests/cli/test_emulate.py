"""`groundswell emulate`, as a process of its own."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from groundswell.cli.emulating import print_books
from groundswell.emulator.faults import KINDS
from groundswell.emulator.ledger import Entry
from groundswell.emulator.prices import FREE
from groundswell.program.request import Usage
from tests.cli.conftest import CommandLine
from tests.patience import PATIENCE

COMMAND = [sys.executable, "-m", "groundswell", "emulate", "--port", "0"]


@contextmanager
def emulating(*flags: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A process that emulates; gives its address."""
    with subprocess.Popen(
        [*COMMAND, "--json", "--for", "60", *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"], process
        finally:
            process.kill()


def post(url: str, body: dict[str, Any]) -> Any:
    headers = {"authorization": "Bearer k", "content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


CHAT = {"model": "echo", "messages": [{"role": "user", "content": "Hi."}]}


@pytest.mark.sampled
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_serves_until_it_is_told_to_end_and_prints_its_books(number: signal.Signals) -> None:
    with emulating("--key", "alice=k", "--speed", "3600") as (url, process):
        assert post(f"{url}/v1/chat/completions", CHAT)["choices"]
        with urllib.request.urlopen(f"{url}/emulator/clock") as answer:
            assert json.load(answer)["speed"] == 3600
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert json.loads(out)["accounts"]["alice"]["echo"]["requests"] == 1


@pytest.mark.slow
def test_for_people_it_says_what_to_set_and_shows_a_table() -> None:
    done = subprocess.run([*COMMAND, "--for", "0"], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert [line.partition("=")[0] for line in done.stdout.splitlines()] == [
        "export OPENAI_BASE_URL",
        "export ANTHROPIC_BASE_URL",
        "export OLLAMA_HOST",
    ]
    assert "No request leaves this machine" in done.stderr
    assert "warning" not in done.stderr
    assert "no requests were received" in done.stderr


@pytest.mark.slow
def test_given_keys_are_named_and_not_shown() -> None:
    done = subprocess.run(
        [*COMMAND, "--for", "0", "--key", "alice=sk-1"], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert "OPENAI_API_KEY='<the key of alice>'" in done.stdout
    assert "sk-1" not in done.stdout + done.stderr


def test_the_faults_there_are(cli: CommandLine) -> None:
    assert set(cli.json("emulate", "--faults")) == set(KINDS)
    listed = cli("emulate", "--faults").stdout
    assert all(name in listed for name in KINDS)


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--latency", "fast"], "latency 'fast'"),
        (["--fault", "flood=1"], "'flood'"),
        (["--price", "gpt=cheap"], "price 'gpt=cheap'"),
        (["--key", "alice"], "--key"),
        (["--speed", "-1"], "--speed"),
        (["--rpm", "0"], "--rpm"),
        (["--webhook", "ftp://x"], "webhook"),
        (["--webhook-secret", "whsec_x"], "webhook_secret"),
        (["--batch-seconds", "-5"], "--batch-seconds"),
        (["--host", "999.1.1.1"], "999.1.1.1"),
    ],
)
def test_what_is_wrong_with_a_flag_is_named(cli: CommandLine, flags: list[str], named: str) -> None:
    assert named in cli("emulate", "--for", "0", "--port", "0", *flags, status=2).stderr


def test_a_port_that_is_taken(cli: CommandLine) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        told = cli("emulate", "--port", str(port), "--for", "0", status=2).stderr
    assert f"port {port} of 127.0.0.1 is in use" in told


def test_names_from_outside_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    entry = Entry()
    entry.pay(b"x", Usage(1, 1), FREE)
    print_books({"accounts": {"a": {"[/x]\x1b[2J": {**entry.show(), "refused": {"404": 2}}}}})
    shown = capsys.readouterr().out
    assert "[/x]?[2J" in shown
    assert "\x1b[2J" not in shown
    assert "refused 2 with 404" in shown
