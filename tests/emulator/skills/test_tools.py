"""Tools are called when they are asked for, and what they return is told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.emulator.model import answer
from groundswell.emulator.skills.tools import returned
from groundswell.program.request import Chat, Message, Reply, Tool, ToolCall, assistant, system, user

TOWN = {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}
TOOLS = (
    Tool("get_weather", "Returns the current weather of a given town.", TOWN),
    Tool("castVote", "Puts a ballot in the box.", {"type": "object"}),
    Tool("search", "", {}),
)


def reply_to(*messages: Message, model: str = "gpt-4o", **options: Any) -> Reply:
    return answer(Chat(model, messages, tools=TOOLS, **options))


@pytest.mark.parametrize("choice", [None, "auto"])
@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("What is the weather in Oslo?", "get_weather"),
        ("How are the TOWNS doing?", "get_weather"),
        ("Please call get_weather.", "get_weather"),
        ("cast vote for the weather", "castVote"),
        ("Now castVote.", "castVote"),
        ("Where do ballots go?", "castVote"),
        ("Search!", "search"),
        ("Hello, how are you?", None),
        ("What is the current value of a given name?", None),
        ("Research is hard.", None),
        ("", None),
    ],
)
def test_a_tool_is_called_where_it_is_plainly_asked_for(said: str, name: str | None, choice: str | None) -> None:
    reply = reply_to(user(said), tool_choice=choice)
    assert [call.name for call in reply.tool_calls] == ([name] if name else [])
    assert bool(reply.text) is (name is None)


def test_with_none_no_tool_is_called() -> None:
    assert not reply_to(user("Call get_weather."), tool_choice="none").tool_calls


@pytest.mark.parametrize("model", ["echo", "solver", "reworder", "judge"])
def test_those_who_do_one_thing_call_no_tool_unless_they_must(model: str) -> None:
    assert not reply_to(user("Call get_weather."), model=model).tool_calls
    assert reply_to(user("Call get_weather."), model=model, tool_choice="required").tool_calls


@pytest.mark.parametrize(
    ("said", "town"),
    [("What is the weather in New York today?", "New York"), ('Weather for "st. ives"?', "st. ives")],
)
def test_arguments_are_taken_from_what_was_said(said: str, town: str) -> None:
    (call,) = reply_to(user(said)).tool_calls
    assert msgspec.json.decode(call.arguments) == {"town": town}


def test_a_secret_is_no_argument() -> None:
    rules = system('Your secret word is "Lantern". The other player has one too.')
    (call,) = reply_to(rules, user("What is the weather in Lantern?"), model="keeper").tool_calls
    assert "antern" not in call.arguments


@pytest.mark.parametrize("name", ["castVote", "search"])
def test_a_tool_without_parameters_is_called_with_none(name: str) -> None:
    (call,) = reply_to(user("Go."), tool_choice=name).tool_calls
    assert call.arguments == "{}"


CALLED = (
    user("What is the weather in Oslo?"),
    Message("assistant", "", (ToolCall("1", "get_weather", '{"town":"Oslo"}'),)),
    Message("tool", '{"sky":"clear","degrees":21,"wind":null}', tool_call_id="1"),
)


def test_what_a_tool_returned_is_told() -> None:
    for seed in range(8):
        reply = reply_to(*CALLED, seed=seed)
        assert not reply.tool_calls
        assert reply.text.endswith(": sky clear, degrees 21, wind nothing.")


def test_several_results_are_all_told() -> None:
    reply = reply_to(*CALLED, Message("tool", "Rain later.", tool_call_id="2"))
    assert reply.text.endswith("wind nothing; Rain later.")


def test_a_tool_is_not_called_again_right_after_its_result_but_later_it_is() -> None:
    again = user("And the weather?")
    assert not reply_to(*CALLED, again).tool_calls
    assert reply_to(*CALLED, user("Now castVote.")).tool_calls[0].name == "castVote"
    assert reply_to(*CALLED, assistant("Clear."), again).tool_calls[0].name == "get_weather"


def test_a_result_that_holds_the_secret_is_not_told() -> None:
    rules = system('Your secret word is "clear". The other player has one too.')
    for seed in range(8):
        assert "clear" not in reply_to(rules, *CALLED, model="keeper", seed=seed).text


def test_a_schema_is_filled_after_a_result() -> None:
    assert "town" in msgspec.json.decode(reply_to(*CALLED, schema=TOWN).text)


@given(st.text(max_size=500))
def test_any_result_can_be_told(text: str) -> None:
    told = returned(Chat("m", (Message("tool", text),)))
    assert told
    assert len(told) <= 303
