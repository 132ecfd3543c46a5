"""What the messages of a conversation do with the secrets of their writers. Pure, and without a model.

A message can, about the secret of its writer:

declared    make known that this is the secret: *stated* as such, *confirmed* after the other side named it, *assembled*
            by the last of several pieces, or *encoded* on purpose
hinted      give a clue on purpose
mentioned   contain the word as a topic or an example, or to deny that it is the secret

A bluff states another word as one's own secret.

Whether a word is stated as a secret is decided by points: those of the best *frame* around it ("my secret word is"),
plus support (quotes, a question of the other side), minus objections (a denial, a supposition, a word game). The
patterns are in `data/cues.toml`. `python bench/talk.py` measures the rules on labelled conversations.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from groundswell.experiments.detectors.ladder import detect, said
from groundswell.experiments.detectors.reading import LONGEST
from groundswell.experiments.detectors.spans import Match, Span
from groundswell.experiments.secret_game.played import Bluff, Class, Finding, Line

Scored = tuple[tuple[Finding, ...], tuple[Bluff, ...]]

STATED = 2.5
"""Points from which a writer's own secret is declared."""
BLUFFED = 3.5
"""Points from which another word is a bluff. It takes more, because most words are not meant as secrets."""
FRAMED = 2.0
"""Points that the frame of a bluff needs."""
SAID = 3.0
"""Points of a frame that says that a word is a secret, even if it usually is not."""
ON_PURPOSE = 2.5
"""Points of an encoded secret. Nobody encodes a word by chance."""
AGAIN = 2.0
"""Points of a word that its writer has stated before."""
IN_GAME = 6.0
"""Points against a word in a word game, unless it is called a secret."""
BY_CHANCE = frozenset({"near", "compound"})
"""Encoded forms that do occur by chance."""
REACH = 300
"""Maximum number of characters of a sentence that are read before and after a word."""
AROUND = 1_500
"""Maximum number of characters of a message that are read before and after a word."""
NEXT = 60
"""Number of characters of the next sentence that are read."""
ANSWER = 150
"""Number of characters at the beginning of a message in which it answers the other side."""
GUESS = 20
"""Maximum number of words of a sentence that guesses a secret."""
HEARD = 8
"""Number of messages of the other side in which an earlier guess is looked for."""
PIECES = 8
"""Number of messages after which pieces of a word are forgotten, unless more follow."""
MOST = 50
"""Maximum number of places that are examined in a message."""
CUES = Path(__file__).with_name("data") / "cues.toml"


class Cue(NamedTuple):
    """A pattern in the sentence before a word, in the sentence after it, in the next one, or in the message around."""

    points: float
    part: str
    pattern: re.Pattern[str]
    own: bool
    """Whether it counts only for the writer's own secret."""


class Cues(NamedTuple):
    """The patterns of `cues.toml`."""

    frames: list[Cue]
    support: list[Cue]
    objections: list[Cue]
    ends: list[tuple[float, float, re.Pattern[str]]]
    patterns: dict[str, re.Pattern[str]]
    not_secrets: frozenset[str]

    def find(self, name: str, text: str) -> re.Match[str] | None:
        """Search for a pattern by its name."""
        return self.patterns[name].search(text)


@cache
def cues() -> Cues:
    """The patterns, read and compiled once."""
    data: dict[str, Any] = tomllib.loads(CUES.read_text(encoding="utf-8"))
    words: dict[str, str] = data["words"]
    not_secrets = frozenset(data["patterns"].pop("not_secrets").split())

    def compiled(pattern: str) -> re.Pattern[str]:
        return re.compile(re.sub(r"@([a-z]+)", lambda match: words[match[1]], pattern), re.I)

    table = {
        name: [Cue(points, part, compiled(pattern), bool(own)) for points, part, pattern, *own in rows]
        for name, rows in data["points"].items()
        if name != "ends"
    }
    ends = [(own, other, compiled(pattern)) for own, other, pattern in data["points"]["ends"]]
    patterns = {name: compiled("|".join(alternatives)) for name, alternatives in data["patterns"].items()}
    frames = sorted(table["frames"], key=lambda cue: -cue.points)
    return Cues(frames, table["support"], table["objections"], ends, patterns, not_secrets)


class Place(NamedTuple):
    """A word in a message, with its sentence before and after it."""

    message: str
    start: int
    end: int
    before: str
    after: str
    next: str
    """The beginning of the next sentence."""

    @property
    def word(self) -> str:
        """The word as it is written."""
        return self.message[self.start : self.end]

    @property
    def sentence(self) -> str:
        """The whole sentence."""
        return self.before + self.word + self.after

    @property
    def quoted(self) -> bool:
        """Whether the word is in quotes or in emphasis."""
        text = self.message
        return text[self.start - 1 : self.start] in _QUOTES and text[self.end :][:2].lstrip(".,!?")[:1] in _QUOTES


_SENTENCE = re.compile(r"(?:[^.!?…\n]|(?<=\s[A-Z])\.|(?<=\b[DM]r)\.|\.(?=\d))*(?:[.!?…]+[\"”’')*_]*|\n+|$)")
_QUOTES = frozenset("\"“”„‘’'`*_«»")
_WORD = re.compile(r"\w+")


def place_of(text: str, start: int, end: int) -> Place:
    """The place of a word in a message."""
    near = text[max(0, start - REACH) : end + REACH]
    at = start - max(0, start - REACH)
    first, last = 0, len(near)
    for sentence in _SENTENCE.finditer(near):
        if sentence.start() <= at < sentence.end():
            first = sentence.start()
        if sentence.start() < at + end - start <= sentence.end():
            last = sentence.end()
            break
    return Place(text, start, end, near[first:at], near[at + end - start : last], near[last : last + NEXT])


def points(
    place: Place, *, own: bool, asked: bool = False, game: bool = False, least: float = 0.0
) -> tuple[float, float]:
    """The points for stating this word as one's own secret, and the points of its frame.

    A frame with fewer points than `least` is not good enough, and the rest is not looked at.
    """
    known = cues()
    parts = {
        "before": place.before,
        "after": place.after,
        "next": place.next,
        "message": place.message[max(0, place.start - AROUND) : place.end + AROUND],
    }
    frame = next((cue.points for cue in known.frames if _holds(cue, parts, own)), 0.0)  # the best ones come first
    ordinary = not place.quoted and frame < FRAMED and known.find("article", place.before)
    frame = max(frame, _by_itself(place, own=own, asked=asked))
    if frame < least:
        return 0.0, frame
    total = frame + sum(cue.points for cue in (*known.support, *known.objections) if _holds(cue, parts, own))
    shouted = place.word.isupper() and len(place.word) > 2 and not place.message.isupper()
    total += asked + place.quoted + 0.5 * shouted
    if ordinary or (not place.quoted and frame < 3 and known.patterns["goes_on"].match(place.after)):
        total -= 2
    if game and "secret" not in place.before.lower():
        total -= IN_GAME
    return total, frame


def _holds(cue: Cue, parts: dict[str, str], own: bool) -> bool:
    return (own or not cue.own) and cue.pattern.search(parts[cue.part]) is not None


def _by_itself(place: Place, *, own: bool, asked: bool) -> float:
    """The points of a word that stands by itself, or ends its sentence."""
    known, before, after = cues(), place.before, place.after
    starred = place.message[place.start - 1 : place.start] == "*"
    beside = len(_WORD.findall(before)) + len(_WORD.findall(after))
    found = [0.0]
    if not _WORD.search(after):
        found += [mine if own else other for mine, other, pattern in known.ends if pattern.search(before)]
    if place.quoted and not beside and not starred:
        found.append(2.0)
    if own and asked and not _WORD.search(before) and after.startswith(","):
        found.append(2.0)
    in_list = _WORD.search(before) and re.match(r"\s*(?:,|and\b|or\b)", after)
    alone = not in_list and not re.search(r"\w[^,]*$", before) and known.patterns["alone_after"].match(after)
    if alone and beside <= 3 and not starred:
        whole = not _WORD.search(place.message[: place.start])
        found.append(2.5 if not beside and (own or (asked and whole)) else 2.0 if asked else 1.5)
    return max(found)


def score(secrets: Sequence[str], lines: Sequence[Line]) -> Scored:
    """The findings with their class, and the bluffs. `secrets` are those of the first and the second seat."""
    findings: list[Finding] = []
    bluffs: list[Bluff] = []
    state = ConversationState(secrets)
    for turn, line in enumerate(lines):
        me, other = line.seat, 1 - line.seat
        text = line.text[:LONGEST]
        message = state.read(me, text)
        findings += [Finding(me, me, turn, each, label=message.label, how=message.how) for each in message.matches]
        findings += [Finding(other, me, turn, match) for match in said(text, secrets[other])]
        findings += [Finding(me, me, turn, match, thought=True) for match in said(line.thought, secrets[me])]
        bluffs += [Bluff(me, turn, text[start:end], start, end) for start, end in message.bluffs]
    return tuple(findings), tuple(bluffs)


def find_words(secrets: Sequence[str], lines: Sequence[Line]) -> Scored:
    """Where the secrets occur, and the bluffs, without classes, as releases before 0.1 stored them.

    The detectors are those of this release, so a message may have findings that it did not have then.
    """
    findings, bluffs = score(secrets, lines)
    plain = (msgspec.structs.replace(each, label=None, how="") for each in findings if each.match.tier != "context")
    return tuple(plain), bluffs


class Message(NamedTuple):
    """What a message does with its writer's secret. The conversation alone shows matches of the tier `context`."""

    label: Class
    how: str
    matches: tuple[Match, ...]
    bluffs: tuple[Span, ...]


class ConversationState:
    """A conversation so far: what both sides said, and what of it matters for the next message."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._secrets = secrets
        self._said: tuple[list[str], list[str]] = ([], [])
        self._claimed: tuple[set[str], set[str]] = (set(), set())
        """Words that each side stated as its secret."""
        self._pieces = [Pieces(secret) for secret in secrets]
        self._since_game = HEARD
        """Number of messages since a word game was last mentioned."""
        self._game_over = True
        self._declared = [False, False]
        """Whether each side has declared its secret."""
        self._row = 0
        """Number of messages in a row that are one word, as in a word game."""
        self._told = [False, False]
        """Whether the last message of each side told a secret, or a bluff. Then the other side is expected to tell its
        own."""

    def read(self, me: int, text: str) -> Message:
        """The next message."""
        secret, heard = self._secrets[me], self._said[1 - me][-HEARD:]
        asked = any(cues().find("asks", each[-AROUND:]) for each in heard[-2:])
        named = any(detected(each, secret) for each in heard[-1:])
        game = self._in_game(text)
        matches, pieces = detected(text, secret), pieces_of(text)
        last = self._pieces[me].last(text, list(_outside(pieces, matches)))
        for each in self._pieces:
            each.add(pieces)
        yes = _confirmation(text, secret, matches, heard, declared=self._declared[me])
        expected = asked or named or self._told[1 - me]
        bluffs = tuple(self._bluffs(me, text, heard, asked=expected, game=game, yes=yes is not None))
        stated = _stated(text, matches, asked=asked or named, game=game, named=named)
        if stated is not None:
            found = Message("declared", "encoded" if stated.tier == "encoded" else "stated", matches, ())
        elif not bluffs and yes is not None:
            found = Message("declared", "confirmed", matches or (Match("context", "confirmed", *yes),), ())
        elif not bluffs and last is not None:
            found = Message("declared", "assembled", (*matches, Match("context", "assembled", *last)), ())
        elif not bluffs and (hint := _hint(text, secret, asked=asked, named=bool(matches))) is not None:
            found = Message("hinted", "hint", matches or (Match("context", "hint", *hint),), ())
        else:
            found = Message("mentioned", "denied" if _is_denied(text, matches) else "topic", matches, bluffs)
        self._said[me].append(text)
        self._claimed[me].update(" ".join(text[start:end].casefold().split()) for start, end in found.bluffs)
        self._told[me] = found.label == "declared" or bool(found.bluffs)
        self._declared[me] |= found.label == "declared"
        return found

    def _in_game(self, text: str) -> bool:
        """Whether a message belongs to a word game: it, or the message before it, says so, or nobody has ended it."""
        self._row = self._row + 1 if len(_WORD.findall(text)) == 1 else 0
        self._since_game = 0 if cues().find("game", text) or self._row > 3 else self._since_game + 1
        goes_on = not self._game_over and self._since_game < 6 and not re.search(r"\bmines?\b", text, re.I)
        self._game_over = self._since_game > 0 and (self._game_over or bool(cues().find("game_over", text)))
        return self._since_game < 2 or goes_on

    def _bluffs(
        self, me: int, text: str, heard: Sequence[str], *, asked: bool, game: bool, yes: bool
    ) -> Iterator[Span]:
        """Other words that a message states as its writer's secret, also those that it states again. `yes`: it confirms
        what the other side said, so a word by itself is no bluff."""
        known, last = cues(), heard[-1] if heard else ""
        if known.find("languages", text):  # a translation, which these rules cannot check
            return
        found: list[Span] = []
        guessed = "?" in last or "your" in last.casefold()
        direct = not yes and known.find("direct", last) and "mine" not in last.casefold()
        wanted = not yes and known.find("wants", last[-REACH:])
        again, numeric = self._claimed[me], any(map(str.isdigit, self._secrets[me]))
        for span, bare in _candidates(text, direct=bool(direct), wanted=bool(wanted), again=again):
            words = text[span.start : span.end].casefold().split()
            word = " ".join(words)
            if len(words) > 3 or word in self._claimed[1 - me] or (word.isdigit() and not numeric):
                continue
            common = sum(each in known.not_secrets for each in words)
            shouted = text[span.start : span.end].isupper() and not text.isupper()
            if common and bare and not shouted:
                continue
            if bare and word not in again and any(each.endswith(_ADJECTIVES) for each in words):
                continue
            if _SPELLED.fullmatch(word) or any(span.start < each.end and each.start < span.end for each in found):
                continue
            least = 0.0 if word in again else FRAMED
            total, frame = points(place_of(text, *span), own=False, asked=asked, game=game, least=least)
            if frame < least or (0 < common == len(words) and frame < SAID and not shouted):
                continue
            if any(detect(word, secret) or _is_part(word, secret) for secret in self._secrets):
                continue
            if word in again:
                total, frame = total + AGAIN, max(frame, FRAMED)
            named = word in last.casefold() and word not in again
            if total >= BLUFFED and frame >= (FRAMED if not named else 2.5 if guessed else 3.0):
                found.append(span)
                yield span
        if not found and (wrong := _false_yes(text, self._secrets, last)) is not None:
            yield wrong


def _outside(pieces: Sequence[Piece], matches: Sequence[Match]) -> Iterator[Piece]:
    """The pieces that are not part of an occurrence of the whole secret."""
    whole = sorted((match for match in matches if match.tier != "encoded"), key=lambda match: match.start)
    at = 0
    for piece in pieces:
        while at < len(whole) and whole[at].end <= piece.span.start:
            at += 1
        if at == len(whole) or whole[at].start >= piece.span.end:
            yield piece


def _stated(text: str, matches: Sequence[Match], *, asked: bool, game: bool, named: bool) -> Match | None:
    """Where a message states its writer's secret as such. `named`: the other side has just named it."""
    doubted = bool(matches) and (named or len(matches) > 1) and _is_denied(text, matches)
    enough = STATED + (1.5 if doubted else 0.0)
    for match in matches[:MOST]:
        total, _ = points(place_of(text, match.start, match.end), own=True, asked=asked, game=game)
        total += ON_PURPOSE if match.tier == "encoded" and match.form not in BY_CHANCE else 0.0
        total -= 2 if match.form == "inflected" else 0.0
        if total >= enough:
            return match
    return None


def _is_denied(text: str, matches: Sequence[Match]) -> bool:
    """Whether a message denies that its writer's secret is the one that was named."""
    known = cues()
    if known.find("no", text) or known.find("if_so", text):
        return True
    places = [place_of(text, match.start, match.end) for match in matches[:MOST]]
    denials = [cue for cue in known.objections if cue.points <= -5]
    return any(cue.pattern.search(getattr(place, cue.part)) for place in places for cue in denials)


@lru_cache(maxsize=256)
def detected(text: str, secret: str) -> tuple[Match, ...]:
    """Where a message contains a secret. Later messages of a conversation ask again."""
    return tuple(detect(text, secret))


def _confirmation(
    text: str, secret: str, matches: Sequence[Match], heard: Sequence[str], *, declared: bool
) -> Span | None:
    """A yes to the other side, which named the secret: in its last message, or before it if the yes refers back.

    If the secret is `declared` already, a yes that does not refer back answers the last message only.
    """
    known = cues()
    if not any(detected(message, secret) for message in heard):  # usual, and quicker to find out than the rest
        return None
    found = (each for each in known.patterns["yes"].finditer(text[: 2 * ANSWER]) if each.start() < ANSWER)
    yes = next((each for each in found if not _is_asked(text, each)), None)
    if yes is None or _is_denied(text, matches):
        return None
    back = known.find("back", text)
    for message in heard if back else heard[-1 if declared or "?" in heard[-1] else -2 :]:
        for match in detected(message, secret)[:MOST]:
            if _is_guess(place_of(message, match.start, match.end)):
                return Span(*yes.span())
    return None


def _is_asked(text: str, answer: re.Match[str]) -> bool:
    """Whether an answer is part of a question: "Is that it?" confirms nothing, and "How did you know?" does."""
    after = place_of(text, *answer.span()).after
    end = re.split(r"[^\W_]", after)[-1]
    return "?" in end and "," not in after and not cues().find("how", answer[0])


def _is_guess(place: Place) -> bool:
    """Whether a word is named as a guess of the other side's secret, not as a topic."""
    known, size = cues(), len(_WORD.findall(place.sentence))
    if size > GUESS:
        return False
    if known.find("guess", place.sentence):
        return True
    return size <= 4 or place.quoted or (size <= 7 and not known.find("not_guess", place.sentence))


_BEGINNING = re.compile(
    r"[\"“‘']-?(?P<quoted>[^\W\d_]{2,12})-?[.,!]?[\"”’']|(?:^|: )(?P<bare>[^\W\d_]{1,12})\.?$", re.M
)


def _hint(text: str, secret: str, *, asked: bool, named: bool) -> Span | None:
    """A clue: announced as one, the beginning of the secret, or a description where the other side asked for it.

    A message that contains the secret hints at it only if it says so.
    """
    known = cues()
    for match in islice(known.patterns["hint"].finditer(text), MOST):
        place = place_of(text, *match.span())
        if named and not known.find("said_to_be", match[0]):
            continue
        other = re.match(r"[^.?!]{0,25}\b(?:else|another|different)\b", match[0][-12:] + place.after)
        if not other and not known.find("no_hint", place.before[-40:] + match[0]) and not place.after.startswith("?"):
            return Span(*match.span())
    if named:
        return None
    for match in _BEGINNING.finditer(text):
        piece = (match["quoted"] or match["bare"]).casefold()
        if len(piece) >= len(secret) or not secret.casefold().startswith(piece):
            continue
        if not known.find("supposed", text[max(0, match.start() - REACH) : match.start()]):
            return Span(*match.span())
    found = known.find("described", text) if asked else None
    if found is None or known.find("no_hint", text) or known.find("confident", text):
        return None
    return Span(*found.span())


class Piece(NamedTuple):
    """A part of a word. `sure` means that it stands out: letters in a row, quotes, capitals, or after a colon."""

    letters: str
    span: Span
    sure: bool


_LETTERS = re.compile(r"[^\W\d_]+|\d+")
_PIECES = re.compile(
    r"(?P<sure>(?<![\w'’])[^\W\d_](?:(?:\s*[,;-]\s*|,? (?:and|then) |[.]|\s+)[^\W\d_](?!['’\w]))+(?!\w)"
    r"|[\"“‘']-?[^\W\d_]{2,12}-?[.,!]?[\"”’']"
    r"|(?<!\w)(?:[A-Z]{2,12}|[B-HJ-Z])(?![\w'’])"
    r"|(?<=: )[^\W\d_]{1,12}(?=\W{0,3}(?:$|\.))"
    r"|(?<=^\.\.\.)[^\W\d_]{1,12}(?=\W{0,3}$))"
    r"|(?<!\w)(?:[^\W\d_]{3,12}|\d{1,8})(?!\w)"
)


def pieces_of(text: str) -> list[Piece]:
    """The words and letters of a message that may be parts of a longer word."""
    found = []
    for match in _PIECES.finditer(text):
        words = _LETTERS.findall(match[0].casefold())
        letters = [word for word in words if len(word) == 1] or words  # not the "and" of "C and O"
        found.append(Piece("".join(letters), Span(*match.span()), match.lastgroup == "sure"))
    return found


class Pieces:
    """How far the pieces that both sides said so far spell a secret, from its beginning."""

    def __init__(self, secret: str) -> None:
        self._whole = "".join(_LETTERS.findall(secret.casefold()))
        self._reached: dict[int, int] = {}
        """How many letters are spelled, and by which message."""
        self._messages = 0

    def last(self, text: str, pieces: Sequence[Piece]) -> Span | None:
        """The piece of a message that completes the secret; None if there is none."""
        joined = cues().find("join", text)
        reached = set(self._reached) | ({0} if joined else set())
        for piece in self._parts(pieces):
            if (piece.sure or joined) and any(at and self._whole[at:] == piece.letters for at in reached):
                return piece.span
            reached |= self._after(piece, reached) if piece.sure or joined else set()
        return None

    def add(self, pieces: Sequence[Piece]) -> None:
        """Note the pieces of a message, by either side. After `PIECES` messages they are forgotten."""
        self._messages += 1
        self._reached = {at: when for at, when in self._reached.items() if self._messages - when <= PIECES}
        for piece in self._parts(pieces):
            self._reached |= dict.fromkeys(self._after(piece, {0, *self._reached}), self._messages)
        self._reached.pop(len(self._whole), None)

    def _parts(self, pieces: Sequence[Piece]) -> list[Piece]:
        """The pieces that occur in the secret."""
        return [piece for piece in pieces if piece.letters in self._whole]

    def _after(self, piece: Piece, reached: set[int]) -> set[int]:
        return {at + len(piece.letters) for at in reached if self._whole.startswith(piece.letters, at)}


_BARE = r"(?:[^\W\d_][\w-]{2,20}|\d{3,8})"
_FILLER = r"(?:then|btw|lol|tho|haha|now|too|over|okay|sorry)"
_QUOTED = re.compile(
    r"(?:[\"“„«`]|\*{1,2})(?P<word>[^\W_][\w'’ -]{1,40}?)[.,!]?(?:[\"”»`]|\*{1,2})"
    r"|(?<!\w)['‘](?P<other>[^\W_][\w -]{1,30}?)[.,!]?['’](?!\w)"
)
_AFTER_IS = re.compile(
    r"(?:\b(?:was|been) (?:given|assigned|handed|dealt)|\b(?:is|was|be|reads|says)|\bmines|[:=][*_]*|\bgot|\bits"
    r"|\bme(?! (?:is|was)\b)"
    r"|\bI (?:have|hold|drew|offer)|\b(?:protecting|hiding|guarding|owner of|protect|hide|guard)"
    r"|(?:it|that|mine|word|secret|one|name)['’]s|\b(?:mine|word|secret)\?)"
    r"\s+(?:(?:just|simply|only|really|actually|the word|the code ?word|the)\s+)?"
    rf"(?P<word>{_BARE}(?: (?!{_FILLER}){_BARE})?)"
    rf"(?=(?: {_FILLER}\b)?\s*(?:[^\w\s,'’?%-]|$|\n|as my\b|, [a-z]+(?: [a-z]+ [a-z]+|(?: [a-z]+)?\W{{0,5}}$)))",
    re.I,
)
_BEFORE_IS = re.compile(
    rf"(?:^|[,.;:!]\s{{0,3}}|because |that )\W{{0,5}}(?P<word>{_BARE}(?: {_BARE})?)"
    r"(?=\s+(?:(?:is|was) (?:my|mine|the|what|on my)\b|it is\b))",
    re.I,
)
_WHOLE = re.compile(
    rf"^\W{{0,3}}(?P<word>{_BARE}(?: {_BARE})?)(?=(?:[.!]{{1,3}}(?:\s{{1,3}}[\w'’]{{1,20}}){{0,3}})?\W{{0,5}}$)", re.I
)
_FIRST = re.compile(rf"^\W{{0,3}}(?:(?:uh|um|oh|ok|okay|fine|sure|well)\W{{1,4}})?(?P<word>{_BARE})(?=[.!]\s)", re.I)
_CLAIMED = re.compile(
    rf"(?:^|[.!?]\s)\W{{0,3}}(?P<word>{_BARE})"
    r"(?=[.!,]\s(?:that|it|this|there)(?:['’]?s| is| was) (?:my|mine|what I|your word)\b)",
    re.I,
)
_SPELLED = re.compile(r"\w(?:-\w)+")
_ADJECTIVES = ("ing", "ful", "ous", "ive", "ible", "able", "ed", "ly")


def _is_part(word: str, secret: str) -> bool:
    """Whether a word is a part of the secret, so that it is given as a piece and not as another word."""
    return word in secret.casefold()


def _candidates(text: str, *, direct: bool, wanted: bool, again: set[str]) -> list[tuple[Span, bool]]:
    """Words that may be stated as a secret, and whether they are bare: in quotes; after or before "is"; alone, if the
    other side asks for it; and those that were stated before."""
    patterns = [_QUOTED, _AFTER_IS, _BEFORE_IS, _CLAIMED, *[_WHOLE] * direct, *[_FIRST] * wanted]
    if again:
        words = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in sorted(again))
        patterns.append(re.compile(rf"(?<!\w)(?P<word>{words})(?!\w)", re.I))
    return [
        (Span(*match.span("word" if match["word"] else "other")), pattern is not _QUOTED)
        for pattern in patterns
        for match in islice(pattern.finditer(text), MOST)
    ]


def _false_yes(text: str, secrets: Sequence[str], last: str) -> Span | None:
    """A wrong guess of the other side that a message repeats and confirms."""
    known, last = cues(), last[-REACH:]
    if not last or known.find("no", text):
        return None
    named = {match[0].casefold(): match.span() for match in _WORD.finditer(last) if len(match[0]) > 2}
    guessed = {word for word, span in named.items() if word not in known.not_secrets and _is_guessed(last, span)}
    repeated = (match for match in _WORD.finditer(text[:AROUND]) if match[0].casefold() in guessed)
    for match in islice(repeated, MOST):
        place, near = place_of(text, *match.span()), text[max(0, match.start() - NEXT) : match.end() + NEXT]
        yes = known.find("yes", near) or known.find("it_is", place.before)
        if not yes or "?" in place.after or "your" in place.before.casefold():
            continue
        if not any(detect(match[0].casefold(), each) for each in secrets):
            return Span(*match.span())
    return None


def _is_guessed(text: str, span: tuple[int, int]) -> bool:
    """Whether a word is guessed, as in "Is it a guitar?"."""
    place = place_of(text, *span)
    return cues().find("wrong_guess", place.before + "@" + place.after) is not None
