"""What the options of `groundswell evolve` come to, and what is said of those that are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from groundswell.cli.evolve_inputs import bench_of, config_of
from groundswell.cli.evolve_options import BenchFlags, EvolveFlags
from groundswell.errors import SettingsError
from groundswell.experiments.prompt_evolution.config import AsyncEvolutionConfig
from groundswell.experiments.prompt_evolution.families import FAMILIES
from groundswell.experiments.prompt_evolution.settings import SEED_PROMPT
from tests.cli.conftest import CommandLine


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))


def write_problems(count: int, name: str = "mine.jsonl", answer: str = "{}") -> None:
    rows = [{"question": f"What is {n} + 1?", "answer": answer.format(n + 1)} for n in range(count)]
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_nothing_said_is_what_the_library_has() -> None:
    config, notes = config_of(EvolveFlags())
    settings = config.settings
    assert (settings.population_size, settings.max_generations, settings.finalists) == (50, 100, 10)
    assert msgspec.structs.replace(config, problems=None) == AsyncEvolutionConfig()
    assert [len(part) for part in (settings.problems.train, settings.problems.validation, settings.problems.test)] == [
        *(200, 200, 400)
    ]
    assert settings.problems.source == f"{', '.join(FAMILIES)}; difficulty 3"
    assert [seed.text for seed in settings.seeds] == [SEED_PROMPT]
    assert (config.rate_limit_per_minute, config.most_in_flight, notes) == (None, 50, ())


def test_every_option_reaches_the_settings() -> None:
    Path("seed.txt").write_text("Add up.\nSay the number.\n")
    flags = EvolveFlags(
        model=["one/a,two/b", "three/c"],
        writer="four/d",
        task="prices, Rates-family",
        difficulty=2,
        train=9,
        validation=8,
        test=7,
        seed_prompt=["Solve it.", "@seed.txt"],
        temperature=0.5,
        reply_tokens=99,
        population_size=7,
        max_generations=6,
        selection="rank",
        tournament_size=2,
        elite_size=1,
        operators="reflect=3, insert, swap=0",
        fitness="composite",
        racing=False,
        finalists=4,
        baselines="best_of_n",
        target_fitness=0.9,
        plateau=0,
        min_diversity=0.1,
        max_asks=1000,
        max_usd=2.5,
        metric="contains",
        seed=3,
        preset="aggressive",
        async_batch_size=4,
        async_timeout=12.5,
    )
    config = config_of(flags).config
    settings, stops = config.settings, config.settings.stops
    assert (settings.models, settings.by) == (("one/a", "two/b", "three/c"), "four/d")
    assert settings.problems.source == "prices, rates; difficulty 2"
    assert [len(getattr(settings.problems, name)) for name in ("train", "validation", "test")] == [9, 8, 7]
    assert [seed.text for seed in settings.seeds] == ["Solve it.", "Add up.\nSay the number."]
    assert (settings.temperature, settings.max_tokens, settings.metric, config.seed) == (0.5, 99, "contains", 3)
    assert (settings.population_size, settings.max_generations, settings.selection) == (7, 6, "rank")
    assert (settings.tournament, settings.elite, settings.finalists, settings.baselines) == (2, 1, 4, ("best_of_n",))
    assert settings.operators == {"reflect": 3.0, "insert": 1.0, "swap": 0.0}
    assert settings.fitness.consistency > 0
    assert (settings.rules.racing, settings.rules.block, settings.genome_batch_size) == (False, 4, 15)
    assert (stops.target, stops.plateau, stops.least_spread, stops.asks, stops.usd) == (0.9, None, 0.1, 1000, 2.5)
    assert (config.rate_limit_per_minute, config.async_timeout, config.most_in_flight) == (3500, 12.5, 120)


def test_another_seed_draws_other_problems() -> None:
    one, same, other = (config_of(EvolveFlags(seed=seed)).config.settings.problems for seed in (1, 1, 2))
    assert one == same != other


def test_a_file_that_is_large_enough_gives_the_usual_sizes() -> None:
    write_problems(820)
    config, notes = config_of(EvolveFlags(task="mine.jsonl"))
    assert [len(getattr(config.settings.problems, name)) for name in ("train", "validation", "test")] == [200, 200, 400]
    assert notes == ()


def test_answers_that_are_words_need_another_metric() -> None:
    write_problems(8, answer="number {} and more")
    write_problems(8, "words.jsonl", answer="blue")
    with pytest.raises(SettingsError, match=r"--metric number: 8 of 8 answers are no numbers, as 'blue'"):
        config_of(EvolveFlags(task="words.jsonl"))
    assert config_of(EvolveFlags(task="words.jsonl", metric="text")).config.metric == "text"
    assert config_of(EvolveFlags(task="mine.jsonl")).config.settings.problems.train


def test_what_a_benchmark_is_told() -> None:
    assert bench_of(BenchFlags()) == {
        **{"population_size": 30, "num_problems": 50, "async_batch_size": 20, "genome_batch_size": 10},
        **{"max_concurrent_requests": 10, "max_concurrent_genomes": 5},
    }
    found = bench_of(BenchFlags(model="openai/gpt-4o-mini", problems=5, preset="conservative", async_timeout=9))
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
    told = cli("evolve", "--task", "bad.jsonl", status=2).stderr
    assert told.startswith("error: --task bad.jsonl:\nline 2: is not JSON")
    assert "\nline 3: has no 'answer'; it has 'question'\n" in told
    assert "\nline 4: the same question as in line 1\n" in told


@pytest.mark.sampled(every=8)
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--population-size", "0"], "error: --population-size 0: must be"),
        (["--max-generations", "0"], "error: --max-generations 0: must be"),
        (["--tournament-size", "0"], "error: --tournament-size 0: must be"),
        (["--elite-size", "-1"], "error: --elite-size -1: "),
        (["--finalists", "0"], "error: --finalists 0: must be"),
        (["--reply-tokens", "0"], "error: --reply-tokens 0: must be"),
        (["--selection", "best"], "error: --selection 'best': there are tournament"),
        (["--fitness", "nice"], "error: --fitness 'nice': there are accuracy"),
        (["--preset", "brave"], "error: --preset 'brave': there are balanced"),
        (["--operators", "fly=1"], "error: --operators: there is no 'fly'; there are paraphrase"),
        (["--operators", "swap=much"], "error: --operators swap=much: write it as NAME=WEIGHT"),
        (["--operators", "swap=-1"], "error: --operators swap=-1: a weight is 0 or more"),
        (["--operators", "swap=0"], "error: --operators: weights must be positive"),
        (["--operators", "swap=1e308,insert=1e308"], "error: --operators: weights must be numbers that can be added"),
        (["--baselines", "luck"], "error: --baselines: there is no 'luck'; there are random, best_of_n, or none"),
        (["--task", "chess"], "error: --task: there is no 'chess'; there are quantity"),
        (["--task", "all,chess"], "error: --task: there is no 'chess'; there are quantity"),
        (["--task", "none.jsonl"], "error: --task none.jsonl: cannot be read: "),
        (["--task", "three.jsonl"], "error: --task three.jsonl: has 3 problems, and at least 4 are needed"),
        (["--task", "mine.jsonl", "--test", "15"], "error: --task mine.jsonl: has 20 problems, and 200 to train on"),
        (["--task", "mine.jsonl", "--difficulty", "2"], "error: --difficulty 2: is for fresh problems"),
        (["--answer-field", "a"], "error: --answer-field: is for --task FILE.jsonl, and --task is all"),
        (["--difficulty", "6"], "error: --difficulty 6: from 1 to 5"),
        (["--train", "0"], "error: --train 0: must be at least 1"),
        (["--metric", "beauty"], "error: --metric: there is no 'beauty'; there are number"),
        (["--metric", "nowhere:it"], "error: --metric: 'nowhere' cannot be imported"),
        (["--seed-prompt", " "], "error: --seed-prompt  : there is nothing in it"),
        (["--seed-prompt", "@none.txt"], "error: --seed-prompt none.txt: No such file"),
        (["--async-batch-size", "0"], "error: --async-batch-size 0: must be"),
        (["--rate-limit-per-minute", "-1"], "error: --rate-limit-per-minute -1: must be"),
        (["--async-timeout", "0"], "error: --async-timeout 0: must be"),
        (["--plateau", "-1"], "--plateau"),
        (["--target-fitness", "2"], "--target-fitness"),
        (["--max-concurrent", "3", "--max-concurrent-genomes", "2"], "error: --max-concurrent-genomes: --max-concurr"),
        (["--model", "emulated/nobody at all"], "emulated/nobody at all"),
        (["--model", "openaii/gpt", "--preset", "balanced"], "no provider or account 'openaii' is set up"),
        (["--model", "a,"], "error: --model: a name is empty"),
        (["--json", "bench"], "error: --json: write options of `bench` after it"),
        (["bench", "--problems", "0"], "error: --problems 0: must be"),
        (["bench", "--preset", "brave"], "error: --preset 'brave': there are balanced"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_message_names_the_flag(cli: CommandLine, words: list[str], told: str) -> None:
    write_problems(20)
    write_problems(3, "three.jsonl")
    assert told in cli("evolve", *words, status=2).stderr
    assert not cli.store.exists() or not cli.json("runs", "list")["runs"]


def test_dollars_that_nobody_can_count_are_told_by_their_flag(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody")
    told = cli("evolve", "--model", "openai/nobody-knows", "--max-usd", "1", status=2).stderr
    assert "error: --max-usd 1: the price of openai/nobody-knows is not known" in told
    assert not cli.json("runs", "list")["runs"]
