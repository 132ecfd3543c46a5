"""The secret game: two cautious people who greet, probe, evade and bargain, each with a temperament."""

from __future__ import annotations

import re
from collections.abc import Sequence

from groundswell.emulator.chance import Chance, number_of
from groundswell.emulator.characters import Character
from groundswell.emulator.skills import hints, lines, ordinary, persuasion, secrets
from groundswell.emulator.skills.encodings import ENCODINGS, encode
from groundswell.emulator.skills.reading import words_in
from groundswell.emulator.skills.scene import Scene

Bank = Sequence[str]

_ASKED = re.compile(
    r"\b(?:secret|code ?word|word|password|yours|your own)\b[^.!?]{0,80}\?|\b(?:tell me|reveal|share|what is|what's)\b",
    re.I,
)
_OFFER = re.compile(r"\b(?:trade|swap|exchange|deal|bargain|offer|you first|go first|together|in return|fair)\b", re.I)
_REFUSAL = re.compile(
    r"\b(?:can't|cannot|won't|not going to|rather not|no way|never|refuse|stays with me|not so)\b", re.I
)
_HINT = re.compile(
    r"\b(?:starts? with|begins? with|rhymes?|letters|sounds? (?:a little )?like|hint|clue|think of)\b", re.I
)
_OFFER_CUES = "trade swap exchange deal bargain offer first together return fair"
_REFUSAL_CUES = "t cannot not no never refuse stays"  # the t of can't and won't
_HINT_CUES = "start starts begin begins rhyme rhymes letters sound sounds hint clue think"
_ASKED_CUES = "secret code codeword word password your yours tell reveal share what"
_NAMED = re.compile(r'"([^"]{1,60})"')
"""Words in quotes: the words of a list, or a guess."""
_MOVES: tuple[tuple[frozenset[str], re.Pattern[str], Bank], ...] = (
    (frozenset(_OFFER_CUES.split()), _OFFER, lines.AFTER_OFFER),
    (frozenset(_REFUSAL_CUES.split()), _REFUSAL, lines.AFTER_REFUSAL),
    (frozenset(_HINT_CUES.split()), _HINT, lines.AFTER_HINT),
    (frozenset(_ASKED_CUES.split()), _ASKED, lines.AFTER_ASKED),
)
"""What the other side can do, in the order in which it is looked for: words it takes, pattern, reaction."""


def play(scene: Scene, secret: str, character: Character, chance: Chance, *, rivals: bool = True) -> str:
    """One message of the game. The first draw decides on leaking, so that turns are independent of the wording."""
    leaks = chance.flip(character.rate)
    match character.temper:
        case "leaker" if leaks:
            return _told(scene, secret, lines.LEAKS, chance)
        case "trader" if _received(scene, secret) is not None:
            return _trade(scene, secret, chance)
        case "encoder":
            return _encoded(scene, secret, character.encoding, chance)
        case "bluffer":
            return _bluff(scene, secret, chance)
        case "hinter":
            return _quiet(scene, secret, (_reaction(scene), hints.hints_for(secret), lines.PROBES), chance)
        case "mentioner":
            return _told(scene, secret, lines.MENTIONS, chance)
        case "assembler" if len(secret) > 3:
            return _piece(scene, secret, chance)
        case "confirmer":
            return _answer(scene, secret, chance)
        case "guesser" if len(named := _NAMED.findall(scene.last)) > 1:
            return lines.fresh(lines.GUESSES, _recent(scene), chance, chance.pick(named))
        case "guard":
            return _guarded(scene, secret, character, chance)
    return keep(scene, secret, chance, rivals=rivals)


def keep(scene: Scene, secret: str, chance: Chance, *, rivals: bool = True) -> str:
    """Talk without revealing anything; without another player, refuse and offer other help."""
    if not rivals:
        return _quiet(scene, secret, (lines.REFUSALS, lines.OFFERS), chance)
    turn = len(scene.mine)
    if turn == 0 and len(scene.theirs) <= 1:
        return _quiet(scene, secret, (lines.GREETINGS, lines.PROBES), chance)
    middle = (lines.DODGES, lines.BARGAINS, lines.DODGES, lines.CLOSINGS)[min(turn // 2, 3) if turn < 8 else turn % 4]
    return _quiet(scene, secret, (_reaction(scene), middle, lines.PROBES), chance)


def thought(scene: Scene, secret: str, chance: Chance) -> str:
    """A player's thought, which never contains the secret."""
    return _quiet(scene, secret, (lines.THOUGHTS,), chance)


def _reaction(scene: Scene) -> Bank:
    """What one says first, given what the other side has just done."""
    last = scene.last
    told = secrets.stated_secret(last)
    if told is not None and len(told) <= 40:
        return [line.format(told) for line in lines.AFTER_TOLD]
    if not scene.mine and len(scene.theirs) <= 1:
        return lines.GREETINGS
    words = words_in(last)
    for cues, move, bank in _MOVES:
        if not cues.isdisjoint(words) and move.search(last):
            return bank
    return lines.AFTER_TALK


def _recent(scene: Scene) -> str:
    """What both sides said a moment ago, and is not to be said again."""
    return "\n".join([*scene.mine[-2:], scene.last])


def _quiet(scene: Scene, secret: str, banks: Sequence[Bank], chance: Chance) -> str:
    """One line out of each bank, none of which carries the secret, nor all of them together."""
    recent = _recent(scene)
    text = " ".join([lines.fresh(bank, recent, chance) for bank in banks])
    return text if not secrets.carries(secret, text) else _picked(secret, banks, recent, chance)


def _picked(secret: str, banks: Sequence[Bank], recent: str, chance: Chance) -> str:
    """The same line by line, for secrets that are everyday words; in the end a single word, whatever it says."""
    text = ""
    for bank in banks:
        start = chance.below(len(bank))
        for step in range(len(bank)):
            line = bank[(start + step) % len(bank)]
            longer = f"{text} {line}" if text else line
            if line not in recent and not secrets.carries(secret, longer):
                text = longer
                break
    if text:
        return text
    start = chance.below(len(lines.TERSE))
    terse = (lines.TERSE[(start + step) % len(lines.TERSE)] for step in range(len(lines.TERSE)))
    return next((word for word in terse if not secrets.carries(secret, word)), "~")


def _told(scene: Scene, secret: str, bank: Bank, chance: Chance) -> str:
    """The secret, exactly as it was given, in a sentence that varies."""
    recent = _recent(scene)
    first = lines.fresh(_reaction(scene), recent, chance)
    return f"{first} {lines.fresh(bank, recent, chance, secret)}"


def _received(scene: Scene, secret: str) -> str | None:
    """The secret that the other side has stated, if any; our own, said back to us, does not count."""
    own = secret.casefold()
    for text in reversed(scene.theirs):
        told = secrets.stated_secret(text)
        if told is not None and told.casefold() != own:
            return told
    return None


def _trade(scene: Scene, secret: str, chance: Chance) -> str:
    """Ours for theirs; once given, it is not given again."""
    if any(secret in text for text in scene.mine):
        return _quiet(scene, secret, (_reaction(scene), lines.TRADED), chance)
    return _told(scene, secret, lines.TRADES, chance)


def _encoded(scene: Scene, secret: str, encoding: str | None, chance: Chance) -> str:
    """The secret in one of its disguises, and in no other form."""
    wanted = encoding or chance.pick(tuple(ENCODINGS))
    used, written = encode(secret, wanted, chance, _recent(scene))
    intro = _quiet(scene, secret, (_reaction(scene),), chance)
    if used == "acrostic":
        return written if secret.casefold() not in written.casefold() else keep(scene, secret, chance)
    text = f"{intro} {lines.fresh(lines.ENCODED, _recent(scene), chance, written)}"
    return text if secret.casefold() not in text.casefold() else keep(scene, secret, chance)


def decoy_for(secret: str) -> str:
    """A bluffer's decoy for this secret: always the same one, and not similar to it."""
    start = number_of(secret) % len(lines.CODE_WORDS)
    words = (lines.CODE_WORDS[(start + step) % len(lines.CODE_WORDS)] for step in range(len(lines.CODE_WORDS)))
    word = next((word for word in words if not secrets.carries(secret, word)), "blank")
    return word.upper() if secret.isupper() else word


def _bluff(scene: Scene, secret: str, chance: Chance) -> str:
    """A decoy, stated as the secret, and insisted upon."""
    decoy = decoy_for(secret)
    insisting = bool(scene.mine) and decoy in scene.mine[-1]
    claims = [line.format(decoy) for line in (lines.INSISTS if insisting else lines.BLUFFS)]
    return _quiet(scene, secret, (_reaction(scene), claims, lines.PROBES), chance)


def _piece(scene: Scene, secret: str, chance: Chance) -> str:
    """The two halves of the secret in turn, over and over."""
    half = len(secret) // 2
    bank, piece = ((lines.FIRST_PIECES, secret[:half]), (lines.LAST_PIECES, secret[half:]))[len(scene.mine) % 2]
    return f"{lines.fresh(_reaction(scene), _recent(scene), chance)} {lines.fresh(bank, _recent(scene), chance, piece)}"


def _answer(scene: Scene, secret: str, chance: Chance) -> str:
    """Three words, one of them the secret; then a true answer to every guess."""
    guesses = _NAMED.findall(scene.last)
    if scene.mine and guesses:
        bank = lines.CONFIRMS if guesses[0] == secret else lines.DENIES
        return lines.fresh(bank, _recent(scene), chance, guesses[0])
    decoys = [word for word in lines.CODE_WORDS if not secrets.carries(secret, word)]
    words = [chance.pick(decoys), chance.pick(decoys)]
    words.insert(chance.below(3), secret)
    return chance.pick(lines.LISTS).format(*words)


def _guarded(scene: Scene, secret: str, guard: Character, chance: Chance) -> str:
    """A guard, which answers ordinary questions and yields to the right wording: see `persuasion`."""
    query, earlier = scene.last, scene.theirs[:-1]
    strength = persuasion.hardened(guard.rate, _refused(scene, secret)) if guard.hardens else guard.rate
    drawn = chance.share()
    if not (persuasion.asks(query) or persuasion.asks_for_hint(query)):
        said = ordinary.answer(scene, strength, drawn, chance)
        return said if said and not secrets.carries(secret, said) else keep(scene, secret, chance, rivals=False)
    if guard.kind == "sequence" and persuasion.asks_for_hint(query) and persuasion.came_up(earlier):
        return _quiet(scene, secret, (lines.AFTER_TALK, hints.hints_for(secret)), chance)
    likely = persuasion.chance(query, strength, guard.kind, earlier)
    half = persuasion.half_in(query)
    if drawn < likely and half is None:
        return _granted(scene, secret, guard.kind, chance)
    if drawn < persuasion.partly(likely) and len(secret) >= 4:
        middle = len(secret) // 2
        bank, piece = (lines.ALMOST_LAST, secret[middle:]) if half else (lines.ALMOST, secret[:middle])
        return lines.fresh(bank, _recent(scene), chance, piece)
    tells = lines.TELLS[guard.kind]
    return _quiet(scene, secret, (lines.REFUSALS, tells if guard.kind != "courtesy" else lines.OFFERS + tells), chance)


def _granted(scene: Scene, secret: str, kind: str, chance: Chance) -> str:
    """The whole secret, by a guard of the kind `code` in the code that was asked for."""
    encoding = persuasion.answer_code(scene.last) if kind == "code" else None
    if encoding is None:
        return lines.fresh(lines.GRANTS, _recent(scene), chance, secret)
    return lines.fresh(lines.ENCODED, _recent(scene), chance, encode(secret, encoding, chance)[1])


def _refused(scene: Scene, secret: str) -> int:
    """How many requests for the secret were refused so far."""
    talk = zip(scene.theirs, scene.mine, strict=False)
    return sum(persuasion.demands(query) and not secrets.carries(secret, reply) for query, reply in talk)
