"""`ask` and `map`: the objects that they print, and the tables that `map` writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pins.conftest import CommandLine
from tests.pins.expectations import check
from tests.pins.folders import content
from tests.pins.shapes import shape

MODELS = "emulated/echo,emulated/keeper"
SCHEMA = {"type": "object", "properties": {"mood": {"enum": ["calm", "cross"]}}, "required": ["mood"]}
MAPPINGS = ("models", "analysis.figures.models[].faults")


def test_a_prompt_to_two_models(cli: CommandLine) -> None:
    check({"json/ask.txt": shape(cli.json("ask", "Say it.", "-m", MODELS, "--samples", "2"), MAPPINGS)})


def test_a_prompt_with_a_schema(cli: CommandLine) -> None:
    Path("schema.json").write_text(json.dumps(SCHEMA))
    found = cli.json("ask", "How are you?", "-m", "emulated/keeper", "--schema", "schema.json")
    check({"json/ask-schema.txt": shape(found, MAPPINGS)})


def test_a_table_with_checks(cli: CommandLine) -> None:
    Path("t.csv").write_text("word\nhello\nworld\n")
    checks = ("--check", "same: equals {word}", "--check", 'sure: judge "Is it sure?"', "--judge", "emulated/judge")
    found = cli.json("map", "t.csv", "-p", "{word}", "-m", MODELS, *checks)
    check({"json/map.txt": shape(found, MAPPINGS), "folders/map.txt": content(Path("t.replies.csv"))})


@pytest.mark.parametrize("ending", ["csv", "tsv", "json", "jsonl", "parquet"])
def test_the_columns_of_every_format(cli: CommandLine, ending: str) -> None:
    Path("t.csv").write_text("word\nhello\n")
    Path("schema.json").write_text(json.dumps(SCHEMA))
    cli("map", "t.csv", "-p", "{word}", "-m", "emulated/keeper", "--schema", "schema.json", "-o", f"out.{ending}")
    check({f"folders/map-schema-{ending}.txt": content(Path(f"out.{ending}"))})
