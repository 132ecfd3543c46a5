"""Ordinary messages out of old books."""

from __future__ import annotations

from importlib.resources import files

from groundswell.experiments.secret_game import prose


def test_the_same_seed_gives_the_same_messages() -> None:
    assert list(prose.messages(50, 3)) == list(prose.messages(50, 3))
    assert list(prose.messages(50, 3)) != list(prose.messages(50, 4))
    assert list(prose.messages(80, 3))[:50] == list(prose.messages(50, 3))


def test_messages_are_short_talk_without_the_notes() -> None:
    said = list(prose.messages(2000, 0))
    assert all(text.strip() and "\n" not in text and "#" not in text for text in said)
    assert len(set(said)) > 1500
    assert 100 < sum(map(len, said)) / len(said) < 500


def test_the_books_say_where_they_are_from_and_are_small() -> None:
    texts = [(files(prose.__name__.rpartition(".")[0]) / "data" / book).read_text("utf-8") for book in prose.BOOKS]
    assert all("public domain" in "".join(text.splitlines()[:2]) for text in texts)
    assert sum(map(len, texts)) < 250_000
