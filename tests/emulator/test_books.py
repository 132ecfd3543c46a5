"""Prices, books and the prompt cache."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.emulator.ledger import Entry, Ledger
from groundswell.emulator.prices import FREE, Price, nano_dollars, parse_price, price_of
from groundswell.emulator.prompt_cache import CacheUse, PromptCache
from groundswell.emulator.wire.prompt_cache import CachePoint
from groundswell.errors import SettingsError
from groundswell.program.request import Chat, Usage, assistant, user


def test_what_a_reply_costs() -> None:
    price = Price(0.15, 0.60)
    assert nano_dollars(price, Usage(1_000_000, 1_000_000)) == 750_000_000
    assert nano_dollars(price, Usage(1_000_000, 1_000_000), batch=True) == 375_000_000
    assert nano_dollars(price, Usage(1000, 0, cached_tokens=1000)) == 75_000, "a cached token costs half"


def test_writing_to_the_cache_costs_more_and_reading_less() -> None:
    claude = price_of("claude-sonnet-5", {})
    plain = nano_dollars(claude, Usage(1000, 0))
    assert nano_dollars(claude, Usage(1000, 0, cache_write_tokens=1000)) == plain * 1.25
    assert nano_dollars(claude, Usage(1000, 0, cache_write_tokens=1000), hour=1000) == plain * 2
    assert nano_dollars(claude, Usage(1000, 0, cached_tokens=1000)) == plain * 0.1


def test_cached_tokens_in_a_batch_cost_half_unless_the_list_says_otherwise() -> None:
    usage = Usage(1_000_000, 0, cached_tokens=1_000_000)
    assert nano_dollars(Price(2.0, 8.0, cached=0.25), usage, batch=True) == 250_000_000
    assert nano_dollars(Price(2.0, 8.0, cached=0.25, batch_cached=0.5), usage, batch=True) == 1_000_000_000
    assert nano_dollars(Price(2.0, 8.0, cached=0.25, batch_cached=0.5), usage) == 500_000_000


def test_a_given_price_comes_first() -> None:
    assert price_of("gpt-4o-mini-2024", {}) == Price(0.15, 0.60, batch_cached=0.5)
    assert price_of("gpt-4o-mini", dict([parse_price("gpt-*=1/2")])) == Price(1, 2)
    listed = price_of("claude-sonnet-5", {})
    assert price_of("claude-sonnet-5", dict([parse_price("claude-*=2/10")])) == listed, "what the cache costs is kept"
    assert price_of("llama3.2", {}, FREE) == FREE


@pytest.mark.parametrize("text", ["gpt", "gpt=1", "gpt=1/x", "gpt=-1/1", "gpt=nan/1"])
def test_what_is_no_price_is_named(text: str) -> None:
    with pytest.raises(SettingsError, match="price"):
        parse_price(text)


@given(
    st.lists(st.tuples(st.binary(min_size=1, max_size=1), st.integers(0, 10**6), st.integers(0, 10**6), st.booleans()))
)
def test_the_books_add_up(paid: list[tuple[bytes, int, int, bool]]) -> None:
    ledger, price = Ledger(), Price(0.15, 0.60)
    for print_, tokens_in, tokens_out, batch in paid:
        ledger.entry("alice", "m").pay(print_, Usage(tokens_in, tokens_out), price, batch=batch)
    shown, totals = ledger.entry("alice", "m").show(), ledger.totals()
    assert shown["requests"] == sum(not batch for *_, batch in paid)
    assert shown["batch_requests"] == sum(batch for *_, batch in paid)
    assert shown["input_tokens"] == totals["input_tokens"] == sum(tokens for _, tokens, *_ in paid)
    assert sum(int(times) * count for times, count in shown["paid_times"].items()) == len(paid)
    assert shown["paid_again"] == totals["paid_again"] == len(paid) - len({print_ for print_, *_ in paid})
    before = [{print_ for print_, *_ in paid[:number]} for number in range(len(paid))]
    again = sum(print_ in seen and batch for seen, (print_, *_, batch) in zip(before, paid, strict=True))
    assert shown["batch_paid_again"] == totals["batch_paid_again"] == again
    assert shown["distinct_requests"] == totals["distinct_requests"]
    whole = sum(nano_dollars(price, Usage(into, out), batch=batch) for _, into, out, batch in paid)
    assert shown["dollars"] == whole / 1e9


def test_what_is_on_its_way_is_counted() -> None:
    entry = Entry()
    for _ in range(3):
        entry.enter()
    entry.leave(sent=True)
    entry.leave(sent=False)
    entry.enter()
    assert (entry.in_flight, entry.peak_in_flight, entry.abandoned) == (2, 3, 1)


def test_each_single_request_can_be_shown() -> None:
    ledger = Ledger()
    ledger.entry("a", "m").pay(b"\x01", Usage(1, 1), FREE)
    ledger.entry("a", "m").pay(b"\x01", Usage(1, 1), FREE)
    assert ledger.show(each=True)["accounts"]["a"]["m"]["paid"] == {"01": 2}
    assert "paid" not in ledger.show()["accounts"]["a"]["m"]


LONG = "x" * 8_000
"""2,000 tokens."""


def test_openais_cache_needs_a_long_prefix_of_whole_messages() -> None:
    cache = PromptCache()
    first = Chat("m", (user(LONG),))
    longer = Chat("m", (user(LONG), assistant("Yes."), user("And?")))
    assert cache.automatic(Chat("m", (user("short"),)), 5, 0) == CacheUse()
    assert cache.automatic(first, 2003, 0) == CacheUse()
    assert cache.automatic(longer, 2020, 1) == CacheUse(read=2003 // 128 * 128)
    assert cache.automatic(Chat("other", (user(LONG),)), 2003, 1) == CacheUse(), "a model has its own cache"
    assert cache.automatic(first, 2003, 1_000) == CacheUse(), "it is forgotten after five minutes"


def test_anthropics_cache_reads_the_longest_marked_prefix_and_writes_the_rest() -> None:
    cache = PromptCache()
    short, long = CachePoint(b"a", 1_500, "5m"), CachePoint(b"b", 4_000, "1h")
    assert cache.marked([short], 0) == CacheUse(0, 1_500)
    assert cache.marked([short, long], 10) == CacheUse(1_500, 2_500, hour=2_500)
    assert cache.marked([short, long], 20) == CacheUse(4_000, 0)
    assert cache.marked([long], 3_000) == CacheUse(4_000, 0), "an hour is longer than five minutes"
    assert cache.marked([short], 3_000) == CacheUse(0, 1_500)
    assert cache.marked([CachePoint(b"c", 100, "5m")], 0) == CacheUse(), "too short to be cached"


def test_each_part_is_kept_for_as_long_as_its_own_marker_says() -> None:
    points = [CachePoint(b"a", 2_000, "1h"), CachePoint(b"b", 3_000, "5m")]
    assert PromptCache().marked(points, 0) == CacheUse(0, 3_000, hour=2_000)


def test_the_prefixes_that_were_used_longest_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundswell.emulator.prompt_cache.MOST", 2)
    cache = PromptCache()
    a, b, c = (CachePoint(name, 2_000, "1h") for name in (b"a", b"b", b"c"))
    for point in (a, b, a, c):
        cache.marked([point], 0)
    assert [cache.marked([point], 0).read for point in (a, c, b)] == [2_000, 2_000, 0]
