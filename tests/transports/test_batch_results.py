"""Reading results: whose they are, what is left, and when a file was whole."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from groundswell.engine.records import AskId, Intent, Item, Settled, Wave
from groundswell.program.request import Chat, Reply, Settlement, user
from groundswell.providers.batches import RequestLookup
from groundswell.transports.batch import Reading
from tests.properties import examples

ASKS = tuple(AskId(number, "0") for number in range(4))
INTENT = Intent(7, "run", "box", "openai_batch", ASKS, 0.0)
IDS = [INTENT.custom_id(ask) for ask in ASKS]


def read(line: bytes, asked: RequestLookup, endpoint: str, now: float) -> tuple[str, Settlement] | None:
    """A line is an id and a text; `?` cannot be read."""
    custom_id, _, text = line.decode().partition(" ")
    request = asked(custom_id)
    return None if custom_id == "?" else (custom_id, Reply(text, model=None if request is None else request.model))


def of(place: int, text: str = "yes") -> bytes:
    return f"{IDS[place]} {text}".encode()


def test_each_ask_is_settled_by_the_first_line_that_is_its_own() -> None:
    reading = Reading(INTENT, "", read)
    assert reading.take(of(1, "first"), 0.0) == Settled(ASKS[1], Reply("first"))
    assert reading.take(of(1, "second"), 0.0) is None
    assert reading.take(b"stranger x", 0.0) is None
    assert reading.take(b"  \r", 0.0) is None
    assert list(reading.left) == [ASKS[0], ASKS[2], ASKS[3]]
    assert not reading.done


def test_a_file_may_begin_with_a_mark_of_its_encoding() -> None:
    reading = Reading(INTENT, "", read)
    for _ in range(2):
        reading.begin()
        reading.take(b"\xef\xbb\xbf" + of(0), 0.0)
        assert reading.whole(1)


def test_what_was_asked_is_known_while_the_wave_is() -> None:
    items = tuple(Item(ask, Chat(f"m{ask.trial}", (user("a"),)), 0) for ask in ASKS)
    wave = Wave(**msgspec.structs.asdict(INTENT), items=items)
    settled = Reading(wave, "", read).take(of(2), 0.0)
    assert settled == Settled(ASKS[2], Reply("yes", model="m2"))


def test_when_a_file_was_whole() -> None:
    reading = Reading(INTENT, "", read)
    reading.begin()
    for line in (of(0), of(0), b"stranger x"):
        reading.take(line, 0.0)
    assert reading.whole(2), "one of ours and a stranger's"
    assert not reading.whole(3), "one that is repeated is none more"
    reading.begin()
    assert reading.whole(1), "what was read before counts"
    assert not reading.whole(2), "strangers are counted anew"
    reading.take(b"? x", 0.0)
    assert not reading.whole(1), "what cannot be read may be anything"
    reading.another()
    reading.begin()
    assert not reading.whole(1), "this is another file"
    for place in (1, 2, 3):
        reading.take(of(place), 0.0)
    assert reading.done
    assert reading.whole(1000), "nothing more is wanted"


def test_an_ask_can_be_settled_otherwise() -> None:
    reading = Reading(INTENT, "", read)
    assert reading.settle(3)
    assert not reading.settle(3)
    assert reading.take(of(3), 0.0) is None
    assert ASKS[3] not in set(reading.left)


@settings(max_examples=examples(100))
@given(st.lists(st.lists(st.sampled_from([*map(of, range(4)), b"stranger x", b"? x", b""]), max_size=8), max_size=4))
def test_nothing_is_settled_twice_or_lost(passes: list[list[bytes]]) -> None:
    reading = Reading(INTENT, "", read)
    settled: list[AskId] = []
    for lines in passes:
        reading.begin()
        settled += [found.ask for line in lines if (found := reading.take(line, 0.0)) is not None]
    assert len(set(settled)) == len(settled)
    assert {*settled, *reading.left} == set(ASKS)
    assert set(settled) == {ASKS[at] for at in range(4) if any(of(at) in lines for lines in passes)}
