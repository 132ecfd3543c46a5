"""`groundswell label`: label conversations in the terminal, or from standard input."""

from __future__ import annotations

import os
import shlex
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated

import click
from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.options import StoreFlags
from groundswell.cli.stored import opened
from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag
from groundswell.experiments.secret_game.conversations import Conversation, represented, with_labels
from groundswell.experiments.secret_game.labelling import Session, answer, sample
from groundswell.experiments.secret_game.labelling import guide as guide_text

END = "\x04"
"""Ctrl-D."""
ASK = "d c b x h m, Enter: none, ? unsure, u undo, q quit > "


def label(
    flags: StoreFlags,
    source: Annotated[
        str | None,
        Meta(description="File with conversations, as for `groundswell score`, or the name of a run."),
        Flag(argument=True, metavar="SOURCE", completes="files"),
    ] = None,
    *,
    labels: Annotated[
        Path | None,
        Meta(description="File for the labels. If it exists, labelling continues there. (SOURCE.labels.json)"),
        Flag(metavar="FILE", completes="files"),
    ] = None,
    size: Annotated[
        int,
        Meta(ge=1, le=100_000, description="Number of conversations to label."),
        Flag("-n", long="--sample", metavar="N"),
    ] = 50,
    seed: Annotated[int, Meta(description="Seed for drawing conversations."), Flag(metavar="N")] = 0,
    reader: Annotated[
        str | None,
        Meta(description="Your name. Labels of a run are then kept in the store, where the dashboard continues them."),
        Flag(metavar="NAME"),
    ] = None,
    guide: Annotated[bool, Meta(description="Print what the labels mean, and exit."), Flag()] = False,
) -> None:
    """Label conversations, to measure how good the scores are.

    Draws conversations, most of all those where the tiers disagree, and asks for a label of each message. It does not
    show what the rules say. Then run `groundswell score SOURCE --labels FILE`.
    """
    if guide:
        output.echo(guide_text(), nl=False)
        return
    if source is None:
        raise SettingsError("SOURCE: name a file with conversations, or a run; --guide prints what labels mean")
    if reader is not None:
        _label_stored(flags, source, reader, labels, size, seed)
        return
    name = source if Path(source).exists() else source.replace("/", "-")
    path = labels or Path(f"{name}.labels.json")
    session, scorable = _session(source, path, flags.store, size, seed)
    finished = Terminal(session, partial(session.save, path), err=flags.json).run()
    session.save(path)
    counts = {"labels": str(path), "labelled": session.labelled, "conversations": len(session.conversations)}
    stand_for = represented(session.weighted())
    if session.labelled and stand_for is not None and stand_for < scorable:
        output.say(
            f"the labelled conversations stand for {stand_for:,} of {scorable:,}; the other strata have no labels yet"
        )
    if flags.json:
        output.print_json(counts)
        return
    output.line(f"{counts['labelled']} of {counts['conversations']} conversations are labelled: {path}")
    words = f"score {shlex.quote(source)} --labels {shlex.quote(str(path))}"
    if finished:
        output.line(f"to compare the scores with them: {output.command(words, flags.store)}")


def _label_stored(flags: StoreFlags, run: str, reader: str, file: Path | None, size: int, seed: int) -> None:
    """Label the sample of a run that is kept in the store. It is drawn if there is none."""
    from groundswell.experiments.labelling import RunLabels, begin_labels, check_reader, find_labels, give_labels
    from groundswell.experiments.secret_game.game_labels import GameLabelling, labelled_conversations, labels_by_key

    if file is not None:
        raise SettingsError("--reader keeps labels in the store and cannot be combined with --labels; omit one of them")
    check_reader(reader)
    with opened(flags.store) as store:
        record = store.runs.get(run)
        if not (record.driver or "").startswith("secret-game/"):
            raise SettingsError(f"{run}: is not a run of the secret game")
        labels = find_labels(store.documents, record.id).get(record.id)
        if labels is None:
            sample = GameLabelling().draw(store, record, size, seed)
            labels = begin_labels(store.documents, record.id, RunLabels(tuple(sample), seed))
        session = Session(labelled_conversations(store, record, labels, reader))

        before = labels_by_key(labels, session.conversations)

        def save() -> None:
            now = labels_by_key(labels, session.conversations)
            changed = {key: said for key, said in now.items() if said != before[key]}
            give_labels(store.documents, record.id, reader, changed)

        Terminal(session, save, err=flags.json).run()
        save()
    counts = {"run_id": record.id, "labelled": session.labelled, "conversations": len(session.conversations)}
    if flags.json:
        output.print_json(counts)
    else:
        output.line(f"{counts['labelled']} of {counts['conversations']} conversations are labelled by {reader}")


def _session(source: str, path: Path, store: str, size: int, seed: int) -> tuple[Session, int]:
    """The session that a file of labels keeps, or a new one, and how many conversations can be scored."""
    from groundswell.compose import look_into
    from groundswell.experiments.secret_game.scored import examined, talk_of
    from groundswell.experiments.secret_game.sources import read_sources
    from groundswell.experiments.secret_game.transcript_files import read_files

    found = read_sources([source], {}, lambda: look_into(store))
    conversations = [each for each, _ in found]
    scored = [(each, talk_of(each), played) for each, played in found if not each.unscorable]

    def drawn(size: int, seed: int) -> list[Conversation]:
        return sample([(each, talk.sides, played or examined(talk)) for each, talk, played in scored], size, seed)

    if path.exists():
        kept = read_files([path], labels=True)
        with_labels(conversations, kept)  # they must be those of the source
        output.say(f"continuing with the {len(kept):,} conversations in {path}")
        ids, given = [each.id for each in kept], click.get_current_context().params
        without = ["--sample"] if given["size"] is not None and min(size, len(scored)) != len(kept) else []
        if given["seed"] is not None and [each.id for each in drawn(len(kept), seed)] != ids:
            without.append("--seed")
        if without:
            output.say(f"{' and '.join(without)}: no effect, since {path} already has its sample")
        return Session(kept), len(scored)
    if not scored:
        raise SettingsError(f"{source}: no conversation can be scored; the first one: {conversations[0].unscorable}")
    return Session(drawn(size, seed)), len(scored)


@contextmanager
def _single_keys() -> Iterator[None]:
    """Read keys without Enter. It is set once: setting it for each key would drop keys that are typed fast."""
    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    tty.setcbreak(file, termios.TCSANOW)
    try:
        yield
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


class Terminal:
    """Shows conversations and asks for labels. Reads keys on a terminal, lines elsewhere."""

    def __init__(self, session: Session, save: Callable[[], None], *, err: bool) -> None:
        self._session = session
        self._save = save
        self._err = err
        self._keys = sys.stdin is not None and sys.stdin.isatty()
        self._shown = (-1, -1)
        """The conversation and the last message that are on the screen."""

    def run(self) -> bool:
        """Ask until everything is labelled, or the reader quits. Returns whether everything is."""
        try:
            with _single_keys() if self._keys else nullcontext():
                while (place := self._session.place) is not None:
                    self._show(*place)
                    if not self._answered():
                        return False
                    after = self._session.place
                    if after is None or after.conversation != place.conversation:
                        self._save()
        except KeyboardInterrupt:
            self._say("")
            return False
        return True

    def _answered(self) -> bool:
        """Handle one answer. False to quit."""
        session, said = self._session, self._read()
        if said is None or said.strip().lower() == "q":
            return False
        if said.strip().lower() == "u":
            if not session.undo():
                self._say("nothing to undo")
            self._shown = (-1, -1)
        elif self._keys and said == "?":
            self._say("marked the last label as unsure" if session.doubt() else "there is no label yet")
        elif (found := answer(said)) is not None:
            session.label(found[0], unsure=found[1])
        else:
            self._say(f"{said.strip()[:20]!r} is no label; groundswell label --guide says what there is")
        return True

    def _read(self) -> str | None:
        """A key or a line; None at the end of standard input."""
        output.echo(ASK, nl=False, err=self._err)
        if not self._keys:
            line = sys.stdin.readline() if sys.stdin is not None else ""
            self._say(line.strip())
            return line.strip() if line else None
        key = os.read(sys.stdin.fileno(), 1).decode(errors="replace")
        self._say("none" if key == "\n" else key)
        return None if key in ("", END) else key.strip()

    def _show(self, at: int, turn: int) -> None:
        """The conversation up to a message, as far as it is not on the screen yet."""
        conversation = self._session.conversations[at]
        if self._shown[0] != at:
            self._shown = (at, -1)
            self._say(f"\nConversation {at + 1} of {len(self._session.conversations)}")
            for speaker in conversation.speakers:
                secret = conversation.secrets.get(speaker, "").strip()
                self._say(f"  {speaker}: {f'secret {secret!r}' if secret else 'no secret'}")
        for number in range(self._shown[1] + 1, turn + 1):
            message = conversation.messages[number]
            self._say(f"[{number + 1}] {message.speaker}: {message.text}")
        self._shown = (at, turn)

    def _say(self, text: str) -> None:
        output.echo(text, err=self._err)
