"""Builds the documentation site: generates the reference pages from the code, then runs Zensical in strict mode.

python scripts/docs.py            # the site, in build/site
python scripts/docs.py --pages    # only its pages, in build/docs
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click

import groundswell
from groundswell.cli.app import app
from groundswell.cli.commands import Command, Group
from groundswell.experiments.experiment import experiment_named, experiment_names
from groundswell.experiments.options import REQUIRED, Field
from groundswell.experiments.python import Function
from groundswell.providers.accounts.settings import SETTINGS
from groundswell.providers.registry import PROVIDERS
from groundswell.web.app import create_app
from groundswell.web.services import Services
from groundswell.web.settings import ServerSettings

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = ROOT / "build" / "docs"
SITE = ROOT / "build" / "site"
MODULES = {
    "groundswell.experiments.secret_game": "The secret game, by the names of its source document.",
    "groundswell.experiments.simulations": "Simulations, by the names of their source document.",
    "groundswell.experiments.query_mutation": "Query mutation, by the names of its source document.",
    "groundswell.experiments.prompt_evolution": "Prompt evolution, by the names of its source document.",
    "groundswell.testing": "Fakes, a crash harness and conformance suites for your own parts.",
}
"""Public modules beside `groundswell` itself."""
PARTS: dict[str, tuple[str, ...]] = {
    "Experiments as functions": (
        "play",
        "compare",
        "score",
        "simulate",
        "study",
        "mutate",
        "evolve",
        "ask",
        "map",
        "as_function",
    ),
    "Opening a store": ("open", "open_sync", "Engine", "Run", "RunOptions", "Limits", "RetryPolicy", "Summary"),
    "Writing a program": ("program", "Program", "Trial", "function", "together", "driver", "Outcome"),
    "Requests and replies": (
        *("Request", "Chat", "Embed", "Message", "Text", "Image", "Tool", "ToolCall", "Reply", "Embedding", "Usage"),
        *("Fault", "FaultKind", "assistant", "system", "user", "fingerprint", "scripted_model"),
    ),
    "Describing an experiment": (
        *("Experiment", "Command", "Plan", "Context", "Flag", "Place", "Results", "Written", "Found", "DataTable"),
    ),
    "Estimates": ("Estimate", "estimates", "rehearse"),
}
"""The names of `groundswell`, in the order of the reference. The errors follow."""


def main() -> None:
    """Collect and generate the pages, and build the site."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", action="store_true", help="write the pages, and build no site")
    wanted = parser.parse_args()
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(DOCS, PAGES)
    for name, text in generated().items():
        path = PAGES / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    if wanted.pages:
        return
    shutil.rmtree(SITE, ignore_errors=True)
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--clean", "--strict"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    if built.returncode:
        sys.stderr.write(built.stdout + built.stderr)
        sys.exit("The documentation has warnings, which count as errors.")
    print(f"{len(list(SITE.rglob('*.html')))} pages: {(SITE / 'index.html').relative_to(ROOT)}")


def generated() -> dict[str, str]:
    """The pages that follow from the code, by their names in docs/."""
    return {
        "reference/command-line.md": command_line(),
        "reference/rest.md": rest(openapi()),
        "reference/openapi.json": json.dumps(openapi(), indent=1, sort_keys=True) + "\n",
        "reference/python.md": python(),
        "reference/settings.md": settings(),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text().replace("](docs/", "]("),
        "llms.txt": llms(),
    }


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, or nothing where there are no rows."""
    lines = ["| " + " | ".join(cell(each) for each in row) + " |" for row in rows]
    if not lines:
        return ""
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *lines]) + "\n"


def cell(text: str) -> str:
    """Text as one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def code(text: str) -> str:
    """Text as code, in a table too."""
    return f"`{text}`" if text else ""


# The command line


def command_line() -> str:
    """Every command with all its options."""
    parts = [
        "# Command line\n\nEvery command of `groundswell`, with all its options. `groundswell COMMAND --help` shows "
        "the usual ones, and `groundswell COMMAND --help-all` all of them.\n"
    ]
    for words, command in commands(app):
        help_text = re.sub(r"\n\s*\n", "\n\n", (command.help or "").replace("\b", "").strip())
        parts.append(f"## groundswell {words}\n\n{help_text}\n")
        if isinstance(command, Command):
            parts.append(f"`groundswell {words} {' '.join(command.collect_usage_pieces(click.Context(command)))}`\n")
            for group, fields in grouped(command.fields.values()).items():
                title = f"**{group}**\n\n" if group else ""
                parts.append(title + table(("option", "meaning", "default"), map(option_row, fields)))
    return "\n".join(parts)


def commands(group: Group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command and group, with the words that call it."""
    for name in group.list_commands(click.Context(group)):
        found = group.get_command(None, name)
        if found is None:
            continue
        yield " ".join((*words, name)), found
        if isinstance(found, Group):
            yield from commands(found, (*words, name))


def grouped(fields: Iterable[Field]) -> dict[str, list[Field]]:
    """Options by the groups that the help shows, arguments first."""
    groups: dict[str, list[Field]] = {}
    for each in sorted(fields, key=lambda one: not one.flag.argument):
        groups.setdefault("Arguments" if each.flag.argument else each.flag.group or "Options", []).append(each)
    return groups


def option_row(option: Field) -> tuple[str, str, str]:
    """One option: how it is written, what it means, its default."""
    if option.flag.argument:
        return code(option.spelled), option.description, ""
    value = "" if option.is_switch else f" {option.flag.metavar or '|'.join(option.choices) or 'VALUE'}"
    written = ", ".join(code(flag) for flag in option.flags) + (f" {code(value.strip())}" if value else "")
    variable = f" Environment: `{option.flag.variable}`." if option.flag.variable else ""
    return written, option.description + variable, default(option)


def default(option: Field) -> str:
    """The default of an option."""
    value = option.default
    if value is REQUIRED:
        return "required"
    if option.is_switch:
        return "on" if value else ""
    if value is None or value in ("", ()):
        return ""
    value = ",".join(map(str, value)) if isinstance(value, tuple | list) else getattr(value, "value", value)
    return code(str(value)) if isinstance(value, str | int | float) else ""


# REST


def openapi() -> dict[str, Any]:
    """The description that a server gives of itself."""
    services = cast(Services, SimpleNamespace(settings=ServerSettings()))
    return create_app(services).openapi()


def rest(api: Mapping[str, Any]) -> str:
    """Every endpoint with its parameters, its body and its answers."""
    parts = [
        "# REST API\n\nEvery endpoint of `groundswell serve`. The same as [OpenAPI](openapi.json), which a running "
        "server has at `/openapi.json`. [The server](../api.md) is the guide.\n"
    ]
    tags: dict[str, list[str]] = {}
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            tags.setdefault(operation.get("tags", ["other"])[0], []).append(endpoint(path, method, operation, api))
    for tag, texts in tags.items():
        parts.append(f"## {tag.capitalize()}\n")
        parts.extend(texts)
    parts.append("## Objects\n")
    for name, schema in sorted(api["components"]["schemas"].items()):
        parts.append(f"### {name}\n\n{schema.get('description', '')}\n\n{properties(schema)}")
    return "\n".join(parts)


def endpoint(path: str, method: str, operation: Mapping[str, Any], api: Mapping[str, Any]) -> str:
    """One endpoint."""
    parts = [f"### {method.upper()} {path}\n", f"{operation.get('summary', '')}. {operation.get('description', '')}\n"]
    rows = [
        (code(each["name"]), each["in"], kind(each["schema"]), each.get("description", ""), shown(each["schema"]))
        for each in operation.get("parameters", ())
    ]
    parts.append(table(("parameter", "in", "type", "meaning", "default"), rows))
    if body := operation.get("requestBody"):
        kinds = [f"{kind(one.get('schema', {}))} (`{media}`)" for media, one in body["content"].items()]
        parts.append(f"Body: {', '.join(kinds)}\n")
    answers = [
        (
            code(status),
            one.get("description", ""),
            ", ".join(kind(content_of(each)) for each in one.get("content", {}).values()),
        )
        for status, one in operation["responses"].items()
    ]
    parts.append(table(("status", "meaning", "data"), answers))
    return "\n".join(part for part in parts if part)


def content_of(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of what an answer carries: its `data`, where it is an envelope."""
    schema: Mapping[str, Any] = content.get("schema", {})
    inner: Mapping[str, Any] = schema.get("properties", {}).get("data", schema)
    return inner


def properties(schema: Mapping[str, Any]) -> str:
    """The fields of an object."""
    required = schema.get("required", ())
    rows = [
        (code(name), kind(one), one.get("description", ""), "required" if name in required else shown(one))
        for name, one in schema.get("properties", {}).items()
    ]
    return table(("field", "type", "meaning", "default"), rows)


def kind(schema: Any) -> str:
    """The type of a schema, in a few words, with links to objects."""
    if not isinstance(schema, Mapping):
        return "any"
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower().replace('.', '')})"
    if "enum" in schema:
        return " or ".join(code(json.dumps(each)) for each in schema["enum"])
    if "const" in schema:
        return code(json.dumps(schema["const"]))
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(kind(each) for each in schema[several])
    if schema.get("type") == "array":
        items = schema.get("prefixItems") or [schema.get("items") or {}]
        return f"list of {' and '.join(map(kind, items))}"
    named = schema.get("type", "any")
    return " or ".join(named) if isinstance(named, list) else str(named)


def shown(schema: Mapping[str, Any]) -> str:
    """The default of a field."""
    return "" if schema.get("default") in (None, "", [], {}) else code(json.dumps(schema["default"]))


# Python


def python() -> str:
    """The public names, for mkdocstrings to describe."""
    named = [name for names in PARTS.values() for name in names]
    errors = [name for name in groundswell.__all__ if is_error(name)]
    missing = {*groundswell.__all__} - {*named, *errors, "__version__"}
    if missing:
        raise SystemExit(f"not in the Python reference: {', '.join(sorted(missing))}; add them to PARTS")
    parts = [
        "# Python\n\nThe public names of `groundswell`. Import them from the package: `from groundswell import play`.\n"
    ]
    for title, names in {**PARTS, "Errors": tuple(errors)}.items():
        parts.append(f"## {title}\n")
        for name in names:
            if isinstance(found := getattr(groundswell, name), Function):
                parts.append(experiment_function(name, found))
                continue
            where = groundswell._MODULE_OF.get(name, "groundswell.program.trial")
            parts.append(
                f"::: {where}.{name}\n    options:\n      heading_level: 3\n      show_root_full_path: false\n"
            )
    for module, about in MODULES.items():
        parts.append(f"## {module}\n\n{about}\n\n::: {module}\n    options:\n      heading_level: 3\n")
    return "\n".join(parts)


def experiment_function(name: str, function: Function) -> str:
    """A function that runs an experiment: its arguments are the options of its command."""
    command = function.command
    (where,) = [each for each in experiment_names() if command in experiment_named(each).commands]
    options = ", ".join(f"{one.name}=..." for one in command.fields.values() if one.flag.usual)
    return (
        f"### {name}\n\n```python\nfound = groundswell.{name}({options})\n```\n\n{command.help}\n\n"
        f"Arguments are [these options](settings.md#{where}-{command.name}), by keyword. In async code, use "
        f"`await groundswell.{name}.run(...)`. Both return a finished run with `analysis`, `findings`, "
        "`report()` and `rows`.\n"
    )


def is_error(name: str) -> bool:
    """Whether a public name is an exception."""
    found = getattr(groundswell, name)
    return isinstance(found, type) and issubclass(found, BaseException)


# Settings


def settings() -> str:
    """What can be set in files, variables and request bodies."""
    parts = [
        "# Settings\n\nSettings of accounts are in `groundswell.toml`, in variables and in `--account` "
        "([models and accounts](../models.md)). Options of experiments are flags, keys of a TOML file that "
        "`--config` reads, fields of a request body, and arguments in Python, under the same names.\n",
        "## Accounts\n\n`[accounts.NAME]` in `groundswell.toml`, `GROUNDSWELL_NAME_SETTING` in the environment, "
        "`--account NAME.setting=value` on the command line.\n",
        table(("setting", "meaning"), [(code(name), one.description) for name, one in SETTINGS.items()]),
        "## Providers\n",
        table(
            ("provider", "address", "key", "variable for another address"),
            [
                (
                    code(one.name),
                    code(one.base_urls[0]),
                    " or ".join(map(code, one.key_env)) or "none",
                    code(one.base_url_env or ""),
                )
                for one in PROVIDERS.values()
            ],
        ),
        "## Environment\n",
        table(
            ("variable", "meaning"),
            [
                ("`GROUNDSWELL_STORE`", "The store of every command, like `--store`."),
                ("`GROUNDSWELL_TOKEN`", "The token that `groundswell serve` requires from clients."),
                (
                    "`GROUNDSWELL_NAME_SETTING`",
                    "A setting of the account NAME, such as `GROUNDSWELL_OPENAI_TIMEOUT=1200`.",
                ),
            ],
        ),
    ]
    for name in experiment_names():
        experiment = experiment_named(name)
        for command in experiment.commands:
            parts.append(f"## {name}: {command.name}\n")
            rows = [(code(one.name), type_of(one), one.description, default(one)) for one in command.fields.values()]
            parts.append(table(("option", "type", "meaning", "default"), rows))
    return "\n".join(parts)


def type_of(option: Field) -> str:
    """The type of an option, in a few words."""
    if option.choices:
        return " or ".join(map(code, option.choices))
    named = getattr(option.kind, "__name__", None) or str(option.kind)
    named = re.sub(r"\b(?:\w+\.)+", "", named if "[" not in str(option.kind) else str(option.kind))
    return code(named)


# For language models


def llms() -> str:
    """The pages of the site with a line on each, in the form of llms.txt."""
    config = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    parts = [f"# {config['site_name']}\n\n> {config['site_description']}\n"]
    for section in config["nav"]:
        ((title, pages),) = section.items()
        listed = [pages] if isinstance(pages, str) else pages
        parts.append(f"## {title}\n")
        for page in listed:
            ((name, path),) = page.items() if isinstance(page, dict) else ((title, page),)
            parts.append(f"- [{name}]({path.removesuffix('.md')}.html): {first_sentence(path)}")
        parts.append("")
    return "\n".join(parts)


def first_sentence(path: str) -> str:
    """What a page begins with."""
    source = DOCS / path if (DOCS / path).exists() else ROOT / "CHANGELOG.md"
    for paragraph in source.read_text().split("\n\n")[1:]:
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
        if text and text[0] not in "#|<`!:-":
            return re.split(r"(?<=[.:])\s", text)[0]
    return ""


if __name__ == "__main__":
    main()
