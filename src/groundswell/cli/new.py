"""`groundswell new`: create a file with an experiment, and its test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from groundswell.cli import output
from groundswell.cli.options import Json
from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag

EXPERIMENT = '''"""Measures how often a model says yes. To see its options: groundswell run {file} --help"""

from typing import Annotated

import msgspec
from msgspec import Meta

from groundswell import Command, Experiment, Run, Trial, program
from groundswell.stats import RowFigure

QUESTIONS = ("Is the sea salty?", "Can a whale fly?", "Is Rome in Italy?", "Is seven an even number?")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Ask a model yes-or-no questions, and measure how often it says yes."""

    model: Annotated[str, Meta(description="Model that answers the questions.")] = "local/smollm2"
    repeats: Annotated[int, Meta(ge=1, description="Number of times each question is asked.")] = 5


class Answer(msgspec.Struct):
    yes: bool


class Question(msgspec.Struct, frozen=True):
    model: str
    text: str
    number: int


@program("{name}/question")
async def question(trial: Trial, spec: Question) -> bool:
    """Ask one question in one conversation. Replies are journalled, so an interrupted run can be resumed."""
    answer = await trial.ask(spec.model, f"{{spec.text}} Answer yes or no.", into=Answer, max_tokens=20)
    trial.row(question=spec.text, yes=answer.yes)
    return answer.yes


class Analysis(msgspec.Struct):
    said_yes: list[RowFigure]


async def run_questions(run: Run, settings: Options) -> Analysis:
    """Run one trial per question and repetition, then analyse the recorded rows."""
    specs = [Question(settings.model, text, number) for number in range(settings.repeats) for text in QUESTIONS]
    async for _ in run.map(question, specs):
        pass
    return Analysis(run.rows.rate("yes", by="question"))


experiment = Experiment("{name}", [Command("run", Options, [run_questions])])
'''
TEST = '''"""Checks that the experiment can be run, resumed and replayed. To run it: pytest {test}"""

from pathlib import Path

from groundswell import Chat, scripted_model
from groundswell.testing import check_experiment

from {module} import experiment


@scripted_model("{name}-yes")
def says_yes(request: Chat) -> str:
    return '{{"yes": true}}'


def test_experiment(tmp_path: Path) -> None:
    options = {{"model": "scripted/{name}-yes", "repeats": 2}}
    check_experiment(experiment, options=options, folder=tmp_path, kill_at=())
'''


def new(
    name: Annotated[
        str,
        Meta(description="Name of the experiment: lower-case letters, digits and dashes, for example my-study."),
        Flag(argument=True, metavar="NAME"),
    ],
    *,
    json: Json = False,
) -> None:
    """Create a file with an experiment, and a file with its test. Both run on the embedded model."""
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        said = "use lower-case letters, digits and dashes, for example my-study"
        raise SettingsError(f"NAME {name}: {said}", field="name")
    module = name.replace("-", "_")
    file, test = Path(f"{module}.py"), Path(f"test_{module}.py")
    for path, text in ((file, EXPERIMENT), (test, TEST)):
        if path.exists():
            raise SettingsError(f"NAME {name}: {path} already exists", field="name")
        path.write_text(text.format(name=name, module=module, file=file, test=test))
    if json:
        output.print_json({"files": [str(file), str(test)]})
        return
    output.line(f"created {file} and {test}")
    output.line(f"to see its options: groundswell run {file} --help")
    output.line(f"to run it on the embedded model: groundswell run {file}")
    output.line(f"to test it: pytest {test}")
