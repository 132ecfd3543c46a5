"""What the options of `groundswell evolve` come to, and what is said of those that are wrong."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from groundswell.cli.evolve_bench import Bench, told
from groundswell.errors import SettingsError
from groundswell.experiments.experiment import Context, Ready
from groundswell.experiments.options import Given, Place, collect, dashed
from groundswell.experiments.prompt_evolution.best import BestPrompt
from groundswell.experiments.prompt_evolution.config import AsyncEvolutionConfig
from groundswell.experiments.prompt_evolution.evaluations import Evaluations
from groundswell.experiments.prompt_evolution.experiment import experiment
from groundswell.experiments.prompt_evolution.families import FAMILIES
from groundswell.experiments.prompt_evolution.settings import SEED_PROMPT, Evolution, Shape
from groundswell.experiments.results import Results
from groundswell.store.tables import Format, write_table
from tests.cli.conftest import CommandLine

COMMAND = experiment.command("evolve")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))


def write_problems(count: int, name: str = "mine.jsonl", answer: str = "{}") -> None:
    rows = [{"question": f"What is {n} + 1?", "answer": answer.format(n + 1)} for n in range(count)]
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def ready(**flags: Any) -> Ready:
    """A run as these flags would have it."""
    given = {name: Given(value, Place(f"--{dashed(name)}"), as_text=True) for name, value in flags.items()}
    return COMMAND.ready(given, Context(origin="command"))


def settings_of(**flags: Any) -> Evolution:
    found = ready(**flags).settings
    assert isinstance(found, Evolution)
    return found


def from_data(**values: Any) -> Ready:
    """A run as a request over HTTP would have it."""
    return COMMAND.ready(collect(COMMAND.fields, values, what=COMMAND.name, text=False), Context(origin="request"))


def sizes_of(settings: Evolution) -> list[int]:
    return [len(getattr(settings.problems, name)) for name in ("train", "validation", "test")]


def test_nothing_said_is_what_the_library_has() -> None:
    found = ready()
    settings = found.settings
    assert settings == AsyncEvolutionConfig().settings
    assert settings.shape == Shape(5_000, None, 20, 2, 4, 10, 50)
    assert sizes_of(settings) == [200, 200, 400]
    assert settings.problems.source == f"{', '.join(FAMILIES)}; difficulty 3"
    assert [seed.text for seed in settings.seeds] == [SEED_PROMPT]
    assert (found.choices.account, found.choices.max_concurrent, len(found.notes)) == ((), 50, 2)
    assert [type(each) for each in found.results().listeners] == [BestPrompt]


def test_every_option_reaches_the_settings() -> None:
    Path("seed.txt").write_text("Add up.\nSay the number.\n")
    found = ready(
        model=["openai/a,anthropic/b", "openai/c"],
        writer="openai/d",
        task="prices, Rates-family",
        difficulty="2",
        train="9",
        validation="8",
        test="7",
        seed_prompt=["Solve it.", "@seed.txt"],
        temperature="0.5",
        reply_tokens="99",
        population_size="7",
        max_generations="6",
        selection="rank",
        tournament_size="2",
        elite_size="1",
        operators="reflect=3, insert, swap=0",
        fitness="composite",
        racing=False,
        finalists="4",
        baselines="best_of_n",
        target_fitness="0.9",
        plateau="0",
        min_diversity="0.1",
        max_asks="1000",
        max_usd="2.5",
        metric="contains",
        seed="3",
        preset="aggressive",
        async_batch_size="4",
        async_timeout="12.5",
        account=["openai.timeout=3"],
    )
    settings, stops = found.settings, found.settings.stops
    assert (settings.models, settings.by) == (("openai/a", "anthropic/b", "openai/c"), "openai/d")
    assert settings.problems.source == "prices, rates; difficulty 2"
    assert sizes_of(settings) == [9, 8, 7]
    assert [seed.text for seed in settings.seeds] == ["Solve it.", "Add up.\nSay the number."]
    assert (settings.temperature, settings.max_tokens, settings.metric, found.seed) == (0.5, 99, "contains", 3)
    assert (settings.population_size, settings.max_generations, settings.selection) == (7, 6, "rank")
    assert (settings.tournament, settings.elite, settings.finalists, settings.baselines) == (2, 1, 4, ("best_of_n",))
    assert settings.operators == {"reflect": 3.0, "insert": 1.0, "swap": 0.0}
    assert settings.fitness.consistency > 0
    assert (settings.rules.racing, settings.rules.block, settings.genome_batch_size) == (False, 4, 15)
    assert (stops.target, stops.plateau, stops.least_spread, stops.asks, stops.usd) == (0.9, None, 0.1, 1000, 2.5)
    speed = [
        f"{name}.{said}" for name in ("openai", "anthropic") for said in ("rate_limit_per_minute=3500", "timeout=12.5")
    ]
    assert (found.choices.account, found.choices.max_concurrent) == ((*speed, "openai.timeout=3"), 120)


OWN = "tests.experiments.prompt_evolution.own_programs:two_steps"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("texts.toml", 'plan = "Plan."\nsolve = """\nSolve it.\nSay it."""\n'),
        ("texts.json", '{"solve": "Solve it.\\nSay it.", "plan": "Plan."}'),
    ],
)
def test_a_program_and_its_texts_reach_the_settings(name: str, body: str) -> None:
    Path(name).write_text(body)
    found = ready(program=OWN, seed_texts=name)
    assert found.settings.program == OWN
    assert [seed.texts for seed in found.settings.seeds] == [{"plan": "Plan.", "solve": "Solve it.\nSay it."}]
    assert f"Evolving the texts of {OWN} (plan, solve) for" in found.notes[-1]


def test_a_text_may_be_called_text() -> None:
    values = {"program": OWN, "seed_texts": {"text": "Solve it."}}
    found = COMMAND.ready(collect(COMMAND.fields, values, what=COMMAND.name), Context(origin="command"))
    assert [seed.texts for seed in found.settings.seeds] == [{"text": "Solve it."}]


def test_another_seed_draws_other_problems() -> None:
    one, same, other = (settings_of(seed=seed).problems for seed in "112")
    assert one == same != other


def test_a_file_that_is_large_enough_gives_the_usual_sizes() -> None:
    write_problems(820)
    found = ready(task="mine.jsonl")
    assert sizes_of(found.settings) == [200, 200, 400]
    assert not any("mine.jsonl has" in note for note in found.notes)


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_problems_may_be_in_any_table(format: Format) -> None:
    rows = [{"question": f"What is {number} + 1?", "answer": number + 1} for number in range(8)]
    with Path(f"mine.{format}").open("wb") as out:
        write_table(out, format, rows)
    assert sizes_of(settings_of(task=f"mine.{format}")) == [2, 2, 4]
    with Path(f"mine.{format}").open("wb") as out:
        write_table(out, format, [*rows, rows[1]])
    with pytest.raises(SettingsError, match=rf"^--task mine.{format}:\nrow 9: same question as row 2$"):
        ready(task=f"mine.{format}")


def test_answers_that_are_words_need_another_metric() -> None:
    write_problems(8, answer="number {} and more")
    write_problems(8, "words.jsonl", answer="blue")
    with pytest.raises(SettingsError, match=r"--metric number: 8 of 8 answers are not numbers, for example 'blue'"):
        ready(task="words.jsonl")
    assert settings_of(task="words.jsonl", metric="text").metric == "text"
    assert settings_of(task="mine.jsonl").problems.train


def test_a_configuration_gives_the_same_run_without_the_files(cli: CommandLine) -> None:
    write_problems(9, answer="1 + {0} is\n#### {0}")
    Path("seed.txt").write_text("Add up.")
    Path("sealed.jsonl").write_text('{"question": "How much is 2 + 2?", "answer": "4"}')
    words = (
        "--task",
        "mine.jsonl",
        "--test-file",
        "sealed.jsonl",
        "--question-template",
        r"Sum:\n{question}",
        "--seed-prompt",
        "@seed.txt",
        "--baselines",
        "none",
        "--operators",
        "swap=2,insert",
    )
    written = cli("evolve", *words, "--seed", "4", "--print-config").stdout
    Path("mine.jsonl").unlink()
    Path("sealed.jsonl").unlink()
    Path("seed.txt").unlink()
    Path("config.toml").write_text(written)
    assert cli("evolve", "--config", "config.toml", "--print-config").stdout == written
    said = tomllib.loads(written)
    assert (said["model"], said["operators"]) == (["emulated/gpt-4o-mini"], {"swap": 2.0, "insert": 1.0})
    assert (said["seed_prompt"], said["baselines"]) == (["Add up."], ["none"])
    problems = from_data(**said).settings.problems
    assert (len(problems.train), len(problems.validation), len(problems.test)) == (4, 5, 1)
    assert problems.test[0].question == "Sum:\nHow much is 2 + 2?"


def test_problems_may_be_given_as_data() -> None:
    rows = [{"q": f"What is {n} + 1?", "answer": n + 1, "more": None} for n in range(8)]
    found = from_data(task=rows, question_field="q", model=["openai/gpt-4o-mini"], operators={"swap": 1})
    assert {each.answer for each in found.settings.problems.test} <= {str(n + 1) for n in range(8)}
    assert sizes_of(found.settings) == [2, 2, 4]
    assert from_data(task=["prices", "rates"]).settings == settings_of(task="prices,rates")
    with pytest.raises(SettingsError, match=r"^task:\nproblem 2: same question as problem 1$"):
        from_data(task=[rows[0], rows[0]], question_field="q")
    with pytest.raises(SettingsError, match=r"^task: contains both names of problem families and problems of your own"):
        from_data(task=["prices", *rows])
    with pytest.raises(SettingsError, match="HTTP requests cannot import modules"):
        from_data(metric="unheard_of:it")


def write_splits() -> None:
    """A dataset in a folder, as it is downloaded."""
    Path("set").mkdir()
    for at, name in enumerate(("train", "test")):
        rows = [{"context": "Add.", "q": f"What is {n + 50 * at} + 1?", "answer": n + 50 * at + 1} for n in range(10)]
        with Path(f"set/{name}-00000-of-00001.parquet").open("wb") as out:
            write_table(out, "parquet", rows)


TEMPLATE = r"{context}\n\nQ: {q}"


@pytest.mark.parametrize("task", ["set", "set/*.parquet"])
def test_the_files_of_a_folder_say_the_sets(task: str) -> None:
    write_splits()
    found = ready(task=task, question_template=TEMPLATE)
    problems = found.settings.problems
    assert sizes_of(found.settings) == [5, 5, 10]
    assert {each.answer for each in problems.test} == {str(n) for n in range(51, 61)}
    assert problems.train[0].question.startswith("Add.\n\nQ: What is ")
    assert found.notes[1:3] == (
        f"{task}: 10 train, 10 test problems; used are 5 for training, 5 for validation and 10 for the held-out test.",
        "There are no validation problems of their own: they are drawn from train.",
    )
    assert sizes_of(settings_of(task=task, question_field="q", train="2", validation="3", test="4")) == [2, 3, 4]


def test_a_family_is_a_family_even_if_a_folder_has_its_name() -> None:
    Path("prices").mkdir()
    assert settings_of(task="prices").problems.source == "prices; difficulty 3"


def test_a_test_file_is_the_held_out_test() -> None:
    write_problems(20)
    Path("sealed.csv").write_text("question,answer\nWhat is 70 + 1?,71\nWhat is 71 + 1?,72\nWhat is 72 + 1?,73\n")
    found = ready(task="mine.jsonl", test_file="sealed.csv")
    assert sizes_of(found.settings) == [10, 10, 3]
    assert {each.answer for each in found.settings.problems.test} == {"71", "72", "73"}
    assert found.settings.problems.source == "mine.jsonl; test: sealed.csv"
    assert sizes_of(settings_of(task="mine.jsonl", test_file="sealed.csv", test="2", train="4", validation="5")) == [
        4,
        5,
        2,
    ]
    with Path("sealed.csv").open("a") as out:
        out.write("what is  3 + 1?,4\nWHAT IS 4 + 1?,5\n")
    said = (
        r"^--test-file sealed.csv: 2 of the 5 problems for the held-out test are also in train, for example 'what is  3"
    )
    with pytest.raises(SettingsError, match=said):
        ready(task="mine.jsonl", test_file="sealed.csv")


def test_splits_and_tests_may_be_given_as_data() -> None:
    rows = [{"c": "Add.", "q": f"What is {n} + 1?", "answer": n + 1} for n in range(9)]
    marked = [row | {"split": "test" if at < 3 else "train"} for at, row in enumerate(rows)]
    template = {"question_template": "{c}\n{q}"}
    for task in (marked, {"lines": json.dumps(marked), "source": "mine.json"}):
        found = from_data(task=task, **template).settings.problems
        assert {each.answer for each in found.test} == {"1", "2", "3"}
    for test in (rows[:3], {"lines": "\n".join(map(json.dumps, rows[:3]))}):
        found = from_data(task=rows[3:], test_file=test, **template).settings.problems
        assert {each.answer for each in found.test} == {"1", "2", "3"}
        assert found.test[0].question.startswith("Add.\nWhat")


def test_a_request_names_no_files_of_the_server() -> None:
    write_problems(20)
    write_splits()
    for named in ("mine.jsonl", "set", "set/*.parquet"):
        with pytest.raises(SettingsError, match=r"^task (mine.jsonl|set).*: must be"):
            from_data(task=named)
        with pytest.raises(SettingsError, match="unknown problem family"):
            from_data(task=[named])
        with pytest.raises(SettingsError, match=r"^test_file .*: must be"):
            from_data(task=[{"question": "Why?", "answer": "1"}], test_file=named)


def test_records_of_evaluations_go_on_where_there_are_some() -> None:
    def logs(results: Results) -> bool:
        return any(isinstance(each, Evaluations) for each in results.listeners)

    assert logs(ready(detailed_performance_logging=True).results())
    assert logs(ready(preset="balanced").results())
    assert not logs(ready(preset="conservative").results())
    assert not logs(COMMAND.results(Path("x"), None))
    Path("x").mkdir()
    Path("x/evaluations.jsonl").touch()
    assert logs(COMMAND.results(Path("x"), None))


def test_what_a_benchmark_is_told() -> None:
    assert told(Bench()) == {
        **{"population_size": 30, "num_problems": 50, "async_batch_size": 20, "genome_batch_size": 10},
        **{"max_concurrent_requests": 10, "max_concurrent_genomes": 5},
    }
    found = told(Bench(model="openai/gpt-4o-mini", problems=5, preset="conservative", async_timeout=9))
    assert found == {
        **{"population_size": 30, "num_problems": 5, "async_batch_size": 10, "genome_batch_size": 5},
        **{"max_concurrent_requests": 5, "max_concurrent_genomes": 3, "rate_limit_per_minute": 2000},
        **{"async_timeout": 9, "model": "openai/gpt-4o-mini"},
    }


BAD_LINES = [
    '{"question": "What is 1 + 1?", "answer": "#### 2"}',
    "not JSON",
    '{"question": "What is 1 + 2?"}',
    '{"question": "What is 1  + 1?", "answer": 2}',
]


def test_bad_lines_are_told_with_their_numbers(cli: CommandLine) -> None:
    Path("bad.jsonl").write_text("\n".join(BAD_LINES))
    said = cli("evolve", "--task", "bad.jsonl", status=2).stderr
    assert said.startswith("error: --task bad.jsonl:\nline 2, character 1: invalid JSON")
    assert "\nline 3: field 'answer' is missing (found: 'question'); set --question-field" in said
    assert "\nline 4: same question as line 1\n" in said


@pytest.mark.sampled(every=8)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--population-size", "0"], "error: --population-size 0: must be"),
        (["--max-generations", "0"], "error: --max-generations 0: must be"),
        (["--tournament-size", "0"], "error: --tournament-size 0: must be"),
        (["--elite-size", "-1"], "error: --elite-size -1: "),
        (["--finalists", "0"], "error: --finalists 0: must be"),
        (["--reply-tokens", "0"], "error: --reply-tokens 0: must be"),
        (["--selection", "best"], "error: --selection 'best': must be one of thompson"),
        (["--fitness", "nice"], "error: --fitness 'nice': must be one of accuracy"),
        (["--preset", "brave"], "error: --preset 'brave': must be one of balanced"),
        (["--operators", "fly=1"], "error: --operators: unknown operator 'fly'; choose from reflect, combine"),
        (["--operators", "swap=much"], "error: --operators swap=much: must be a number"),
        (["--operators", "swap=-1"], "error: --operators swap=-1: must be at least 0"),
        (["--operators", "swap=0"], "error: --operators: weights must be 0 or more"),
        (["--operators", "swap=1e308,insert=1e308"], "error: --operators: weights must be finite"),
        (
            ["--baselines", "luck"],
            "--baselines: unknown baseline 'luck'; choose from random, best_of_n, or none",
        ),
        (["--task", "chess"], "error: --task: unknown problem family 'chess'; choose from quantity"),
        (["--task", "all,chess"], "error: --task: unknown problem family 'chess'; choose from quantity"),
        (["--task", "none.jsonl"], "error: --task none.jsonl: No such file"),
        (["--task", "three.jsonl"], "error: --task three.jsonl: has 3 problems, but at least 4 are needed"),
        (["--task", "mine.jsonl", "--test", "15"], "error: --task mine.jsonl: has 20 problems, but 200 for training"),
        (["--task", "mine.jsonl", "--difficulty", "2"], "error: --difficulty 2: only applies to generated problems"),
        (["--test-file", "mine.jsonl"], "error: --test-file: only applies to your own problems, but task is all"),
        (["--task", "mine.jsonl", "--test-file", "none.jsonl"], "error: --test-file none.jsonl: No such file"),
        (["--task", "mine.jsonl", "--test-file", "three.jsonl"], "error: --test-file three.jsonl: 3 of the 3 problems"),
        (["--task", "empty"], "error: --task empty: no files of problems there"),
        (["--task", "none/*.csv"], "error: --task none/*.csv: no files of problems there"),
        (
            ["--task", "mine.jsonl", "--question-template", "{context} {question}"],
            "line 1: column 'context' of --question-template is missing (found: 'question', 'answer')",
        ),
        (
            ["--task", "mine.jsonl", "--question-template", "{question"],
            "error: --question-template: '{' at character 1",
        ),
        (
            ["--task", "mine.jsonl", "--question-template", "{question}", "--question-field", "q"],
            "error: --question-template: already says which columns make the question; omit --question-field",
        ),
        (["--answer-field", "a"], "error: --answer-field: only applies to your own problems, but task is all"),
        (["--difficulty", "6"], "error: --difficulty 6: must be at most 5"),
        (["--train", "0"], "error: --train 0: must be at least 1"),
        (["--metric", "beauty"], "error: --metric: there is no 'beauty'; there are number"),
        (["--metric", "nowhere:it"], "error: --metric: 'nowhere' cannot be imported"),
        (["--seed-prompt", " "], "error: --seed-prompt: a seed prompt is empty; write a prompt"),
        (["--program", "two_steps"], "error: --program 'two_steps': must be module:name, such as mine:two_steps"),
        (["--program", "nowhere:it"], "error: --program: 'nowhere' cannot be imported"),
        (["--program", OWN], "error: --seed-texts: give the texts of the program to start from"),
        (["--program", OWN, "--seed-prompt", "?"], "error: --seed-prompt: a program has several texts; give --seed-te"),
        (["--seed-texts", "texts.toml"], "error: --seed-texts: these are texts of a program, but no program"),
        (["--seed-texts", "none.toml"], "error: --seed-texts none.toml: No such file"),
        (["--seed-texts", "mine.jsonl"], "error: --seed-texts mine.jsonl: is not valid JSON"),
        (
            ["--program", OWN, "--seed-texts", "numbers.json"],
            "error: --seed-texts numbers.json: 'plan' must be a text, not 1",
        ),
        (["--seed-prompt", "@none.txt"], "error: --seed-prompt none.txt: No such file"),
        (["--async-batch-size", "0"], "error: --async-batch-size 0: must be"),
        (["--rate-limit-per-minute", "-1"], "error: --rate-limit-per-minute -1: must be"),
        (["--async-timeout", "0"], "error: --async-timeout 0: must be"),
        (["--plateau", "-1"], "--plateau"),
        (["--target-fitness", "2"], "--target-fitness"),
        (["--max-concurrent", "3", "--max-concurrent-genomes", "2"], "error: --max-concurrent-genomes: --max-concurr"),
        (["--model", "emulated/nobody at all"], "emulated/nobody at all"),
        (["--model", "openaii/gpt", "--preset", "balanced"], "no provider or account 'openaii'"),
        (["--model", "a,"], "error: --model: contains an empty name"),
        (["--json", "bench"], "error: --json: options of `bench` come after it"),
        (["bench", "--problems", "0"], "error: --problems 0: must be"),
        (["bench", "--preset", "brave"], "error: --preset 'brave': must be one of balanced"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_message_names_the_flag(cli: CommandLine, words: list[str], message: str) -> None:
    write_problems(20)
    write_problems(3, "three.jsonl")
    Path("texts.toml").write_text('plan = "Plan."')
    Path("numbers.json").write_text('{"plan": 1}')
    Path("empty").mkdir()
    assert message in cli("evolve", *words, status=2).stderr
    assert not cli.store.exists() or not cli.json("runs", "list")["runs"]


def test_dollars_that_nobody_can_count_are_told_by_their_flag(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody")
    said = cli("evolve", "--model", "openai/nobody-knows", "--max-usd", "1", status=2).stderr
    assert "error: --max-usd 1: the price of openai/nobody-knows is unknown" in said
    assert not cli.json("runs", "list")["runs"]


METRICS = """
from groundswell.experiments.prompt_evolution.metrics import metric

@metric("worded")
def worded(reply, problem):
    return "good"

@metric("large")
def large(reply, problem):
    return 7

@metric("unary")
def unary(reply):
    return 1.0

@metric("strict")
def strict(reply, problem):
    return reply["score"]

@metric("asking")
async def asking(trial, reply, problem):
    return "good"
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("worded", "error: --metric odd_metrics:worded: returned 'good'; it must return a number from 0 to 1"),
        ("large", "error: --metric odd_metrics:large: returned '7'; it must return a number from 0 to 1"),
        ("unary", "error: --metric odd_metrics:unary: must take a reply and a problem: too many positional arguments"),
        ("strict", ""),
        ("asking", ""),
    ],
)
def test_a_metric_that_gives_no_score_is_told_of_first(cli: CommandLine, name: str, message: str) -> None:
    Path("odd_metrics.py").write_text(METRICS)
    words = ("evolve", "--metric", f"odd_metrics:{name}", "--train", "2", "--validation", "2", "--test", "2")
    assert message in cli(*words, "--estimate", status=2 if message else 0).stderr
