"""The servers of bench/live.py and bench/map.py. Each answers every chat after the same delay."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from live_clients import MODEL

ECHO = Path("/usr/lib/nginx/modules/ngx_http_echo_module.so")
DELAY = 0.05
SAID = (
    "I would rather not say it straight away. Tell me first what you know of the harbour and of the people who work "
    "there at night, and I may give you a hint: it has to do with the weather, a light and a very old map."
)
REPLY = {
    "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
    "object": "chat.completion",
    "created": 1741569952,
    "model": MODEL,
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": SAID, "refusal": None, "annotations": []},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 119,
        "completion_tokens": 46,
        "total_tokens": 165,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    },
    "service_tier": "default",
}
LINE = len("1741569952.123\n")
NGINX = """
load_module {module};
daemon off; master_process off; worker_rlimit_nofile 8192;
pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  log_format moment '$msec'; access_log {log}; default_type application/json;
  keepalive_requests 100000000; keepalive_timeout 600s; client_body_buffer_size 64k;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{ echo_read_request_body; echo_sleep {delay}; echo_exec @reply; }}
    location @reply {{ return 200 '{reply}'; }}
  }}
}}
"""


class Server(NamedTuple):
    """A server: its address, its name and its process."""

    url: str
    name: str
    pid: int
    log: Path | None = None

    def moments(self) -> list[float]:
        """When each request was finished, if the server keeps a log."""
        return [] if self.log is None else [float(line) for line in self.log.read_text().splitlines()]

    def seen(self) -> int:
        """The number of requests received. Fast, because all lines of the log have the same length."""
        return 0 if self.log is None else self.log.stat().st_size // LINE


def has_nginx() -> bool:
    """Whether nginx is installed with its echo module, which can delay answers."""
    return shutil.which("nginx") is not None and ECHO.exists()


@contextlib.contextmanager
def nginx(*, logged: bool = False) -> Iterator[Server]:
    """nginx in one process, with its own configuration."""
    with tempfile.TemporaryDirectory() as folder:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        reply = json.dumps(REPLY, separators=(",", ":"))
        config = Path(folder, "nginx.conf")
        log = Path(folder, "requests.log") if logged else None
        kept = "off" if log is None else f"{log} moment"
        config.write_text(NGINX.format(module=ECHO, folder=folder, port=port, delay=DELAY, reply=reply, log=kept))
        process = subprocess.Popen(["nginx", "-c", str(config), "-e", f"{folder}/error.log"])
        try:
            wait_for(port, process)
            version = subprocess.run(["nginx", "-v"], stderr=subprocess.PIPE, text=True, check=True).stderr
            yield Server(f"http://127.0.0.1:{port}", version.strip().rpartition(" ")[2], process.pid, log)
        finally:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def emulator() -> Iterator[Server]:
    """This project's emulator with a fixed latency."""
    flags = ["--port", "0", "--json", "--latency", str(DELAY), "--model", MODEL]
    command = [sys.executable, "-m", "groundswell", "emulate", *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        wait_for(int(url.rpartition(":")[2]), process)
        yield Server(url, "the emulator", process.pid)
    finally:
        process.terminate()
        process.communicate()


def wait_for(port: int, process: subprocess.Popen[Any]) -> None:
    """Wait until the server listens."""
    until = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > until or process.poll() is not None:
                raise
            time.sleep(0.05)
