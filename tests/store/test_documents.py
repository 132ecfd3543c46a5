"""Documents: what experiments keep between runs, in real files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from groundswell.store.database import Database
from groundswell.store.documents import Documents


@pytest.fixture
def documents(database: Database) -> Documents:
    return Documents(database)


def ids(documents: Documents, kind: str, **options: Any) -> list[str]:
    return [document.id for document in documents.list(kind, **options)]


def test_documents_come_in_the_order_in_which_they_were_added(documents: Documents) -> None:
    documents.add(("a", "z", "1"), ("a", "y", "2"))
    documents.add(("b", "other", "3"))
    documents.add(("a", "x", "4"))
    assert ids(documents, "a") == ["z", "y", "x"]
    assert ids(documents, "a", limit=1, offset=1) == ["y"]
    assert (documents.count("a"), documents.count("b"), documents.count("c")) == (3, 1, 0)


def test_all_are_added_or_none(documents: Documents) -> None:
    documents.add(("a", "x", "1"))
    assert documents.add(("a", "w", "2"), ("a", "x", "3"), ("b", "x", "4")) == ["x"]
    assert documents.add(("a", "w", "2"), ("a", "w", "3")) == ["w"]
    assert ids(documents, "a") == ["x"]
    assert documents.count("b") == 0
    assert documents.find("a", "x")["x"].body == "1"


def test_many_are_added_with_few_questions(database: Database) -> None:
    documents, asked = Documents(database), list[str]()
    sa.event.listen(database.engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    new = [("a", str(each), "1") for each in range(2_000)]
    assert documents.add(*new) == []
    assert len(asked) < 20
    assert documents.add(("a", "new", "1"), *new[-2:]) == ["1998", "1999"]


def test_an_id_may_be_used_again_in_another_kind(documents: Documents) -> None:
    assert documents.add(("a", "x", "1"), ("b", "x", "2")) == []
    assert documents.find("b", "x", "y")["x"].body == "2"


def test_a_change_keeps_place_and_birth(documents: Documents) -> None:
    documents.add(("a", "x", "1"), ("a", "y", "2"))
    before = documents.find("a", "x")["x"]
    assert documents.change("a", "x", "9")
    after = documents.find("a", "x")["x"]
    assert (after.body, after.created_at) == ("9", before.created_at)
    assert after.updated_at >= before.updated_at
    assert ids(documents, "a") == ["x", "y"]
    assert not documents.change("a", "nobody", "9")


def test_many_are_found_and_deleted_at_once(documents: Documents) -> None:
    names = [f"n{number}" for number in range(1_201)]
    documents.add(*(("a", name, "{}") for name in names))
    assert set(documents.find("a", *names, "nobody")) == set(names)
    assert documents.delete("a", *names[1:], "nobody") == 1_200
    assert ids(documents, "a") == ["n0"]


def test_documents_are_chosen_by_what_is_in_them(documents: Documents) -> None:
    bodies = ['{"of":"p"}', '{"of":"q"}', '{"of":"p\'\\""}', "{}", '{"of":null}', '{"of":"p","n":1}']
    documents.add(*(("a", f"n{number}", body) for number, body in enumerate(bodies)))
    assert [document.id for document in documents.list("a", having={"of": "p"})] == ["n0", "n5"]
    assert [document.id for document in documents.list("a", having={"of": "p'\""})] == ["n2"]
    assert documents.count("a", having={"of": "p"}) == 2
    assert documents.count("a", having={"of": "none"}) == 0


def test_an_error_within_a_transaction_undoes_it(documents: Documents) -> None:
    def change_and_fail() -> None:
        with documents.changing() as held:
            held.add(("a", "x", "1"))
            assert held.count("a") == 1
            raise KeyError

    with pytest.raises(KeyError):
        change_and_fail()
    assert documents.count("a") == 0
    assert documents.add(("a", "x", "1")) == []  # and the file is not left locked


def test_of_many_who_add_the_same_one_succeeds(documents: Documents) -> None:
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda number: documents.add(("a", "x", str(number))), range(16)))
    assert taken.count([]) == 1
    assert taken.count(["x"]) == 15
