"""What broke the emulator once: odd bytes, odd moments and odd settings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.emulator.desk_scene import Scene, openai_line

NOT_UTF8 = b'{"model": "gpt-\xff", "messages": []}'


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/chat/completions", "/v1/embeddings", "/v1/batches", "/v1/messages", "/v1/messages/count_tokens"),
        *("/v1/messages/batches", "/api/chat", "/api/generate", "/api/embed", "/api/show"),
        *("/emulator/faults", "/emulator/clock"),
    ],
)
def test_a_body_that_is_not_utf8_is_a_bad_request(scene: Scene, path: str) -> None:
    assert "error" in scene.ask("POST", path, NOT_UTF8, status=400)


def test_a_line_that_is_not_utf8_fails_its_batch_and_no_other(scene: Scene) -> None:
    bad, good = scene.submit([NOT_UTF8 + b"\n"]), scene.submit([openai_line(1)])
    scene.advance(700)
    (problem,) = scene.batch(bad)["errors"]["data"]
    assert (problem["code"], problem["line"]) == ("invalid_json_line", 1)
    assert scene.batch(good)["status"] == "completed"
