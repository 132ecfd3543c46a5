"""Bodies that are not plain JSON, or too large, end with a clean refusal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.web.bodies import DEEPEST, flaw
from tests.web.scene import REQUEST, Api, serving

GOOD = json.dumps(REQUEST).encode()
BAD: dict[str, bytes] = {
    "cut off": GOOD[:-5],
    "no JSON at all": b"name=x",
    "NaN": b'{"temperature": NaN}',
    "infinity": b'{"temperature": -Infinity}',
    "a number without end": b'{"temperature": 1e999}',
    "a huge integer": b'{"seed": ' + b"9" * 5000 + b"}",
    "an integer of 65 bits": b'{"seed": 18446744073709551616}',
    "not UTF-8": b'{"name": "\xff\xfe"}',
    "half a character": b'{"metadata": {"a": "\\ud800"}}',
    "half a character as a key": b'{"metadata": {"\\udfff": 1}}',
    "a key twice": b'{"name": "a", "name": "b"}',
    "a key twice inside": b'{"metadata": {"a": 1, "a": 2}}',
    "a key twice among very many": b"{" + b"".join(b'"%d":1,' % each for each in range(80_000)) + b'"79999":1}',
    "nested without end": b'{"metadata": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "nested too deep": b'{"metadata": ' + b'{"a":' * 60 + b"1" + b"}" * 60 + b"}",
    "two values": b"{} {}",
}


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
def test_what_is_no_plain_json_is_refused(shared: Api, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    found = shared("POST", "/batch-simulations", 400, content=body, headers=headers)
    assert "JSON" in found["message"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_other_kinds_of_bodies_are_refused(shared: Api, kind: str) -> None:
    shared("POST", "/batch-simulations", 415, content=GOOD, headers={"Content-Type": kind})


def test_json_with_a_charset_is_json(shared: Api) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    shared.ended(shared("POST", "/batch-simulations", 201, content=GOOD, headers=headers)["id"])


@pytest.mark.parametrize("body", [b"[]", b'"x"', b"null", b"7", b""], ids=repr)
def test_what_is_no_object_is_refused(shared: Api, body: bytes) -> None:
    shared("POST", "/batch-simulations", 422, content=body, headers={"Content-Type": "application/json"})


def test_too_large_a_body_is_refused_by_what_it_says_and_by_what_it_is(tmp_path: Path) -> None:
    large = json.dumps({**REQUEST, "metadata": {"more": "x" * 5_000}}).encode()

    def pieces() -> Iterator[bytes]:
        for at in range(0, len(large), 100):
            yield large[at : at + 100]

    with serving(tmp_path, max_body_bytes=2_000) as api:
        headers = {"Content-Type": "application/json"}
        assert "2,000" in api("POST", "/batch-simulations", 413, content=large, headers=headers)["message"]
        assert "2,000" in api("POST", "/batch-simulations", 413, content=pieces(), headers=headers)["message"]
        api.ended(api.create())


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.booleans())
def test_plain_json_has_no_flaw(value: object, escaped: bool) -> None:
    assert flaw(json.dumps(value, ensure_ascii=escaped).encode()) is None


@given(st.binary(max_size=60))
def test_any_bytes_are_refused_or_read(body: bytes) -> None:
    if flaw(body) is None:
        json.loads(body)


@given(st.integers(1, 2 * DEEPEST), st.sampled_from([("[", "]"), ('{"a":', "}")]))
def test_the_depth_is_counted_exactly(depth: int, ends: tuple[str, str]) -> None:
    body = (ends[0] * depth + "1" + ends[1] * depth).encode()
    assert (flaw(body) is None) == (depth <= DEEPEST)
