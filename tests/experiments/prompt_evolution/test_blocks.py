"""The blocks of a report: all of them render, whatever is missing, and nothing that a model wrote runs."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from groundswell.engine.summary import summarise
from groundswell.experiments.prompt_evolution.analysis import Analysis, Finalist, Moment, Polish
from groundswell.experiments.prompt_evolution.best import Best
from groundswell.experiments.prompt_evolution.blocks import unfinished_blocks
from groundswell.experiments.prompt_evolution.fitness import COMPOSITE
from groundswell.experiments.prompt_evolution.genome import Genome
from groundswell.experiments.prompt_evolution.reading import Evolved, Solution, Unfinished
from groundswell.experiments.prompt_evolution.solving import Solved
from groundswell.experiments.prompt_evolution.transcripts import transcripts_block
from groundswell.reporting.blocks import Block, Estimate, Figure, KeyFigures, Message, Table, Text, plain
from groundswell.reporting.figures import svg_of
from groundswell.reporting.markdown import markdown_of
from groundswell.reporting.page import page_of
from groundswell.reporting.terminal import brief
from tests.experiments.prompt_evolution.evolutions import (
    BEST,
    EVIL,
    SCORES,
    SEED,
    analysis,
    evolved,
    large,
    nothing,
    report_of,
    searched,
    whole,
    write_report,
)

IDS = (
    *("findings", "prompt", "changes", "key-figures", "sealed-test", "accuracies", "gains", "parts", "curves"),
    *("genealogy", "lineage", "front", "spending", "fates", "operators", "polish", "prompts", "transcripts"),
    *("beware", "settings"),
    *("failed-births", "again"),
)
FIGURES = ("accuracies", "gains", "curves", "genealogy", "front", "spending")
ALL_FIGURES = ("accuracies", "gains", "parts", "curves", "genealogy", "front", "spending")


def block(about: Evolved, id_: str) -> Block:
    return next(each for each in report_of(about).blocks if each.id == id_)


def table(about: Evolved, id_: str) -> Table:
    found = block(about, id_)
    assert isinstance(found, Table)
    return found


def column(found: Table, name: str) -> list[object]:
    at = list(found.columns).index(name)
    return [row[at] for row in found.rows]


def rendered(about: Evolved) -> list[str]:
    """The report in every form."""
    report = report_of(about)
    text = "\n".join(map(str, brief(report)))
    return [page_of(report), markdown_of(report), text, msgspec.json.encode(plain(report)).decode()]


@pytest.mark.slow
def test_a_rich_run_has_every_block_and_all_of_them_render() -> None:
    about = evolved(whole())
    report = report_of(about)
    assert [each.id for each in report.blocks] == list(IDS)
    assert [each.id for each in report.figures] == list(ALL_FIGURES)
    assert [each.id for each in report.brief] == ["findings", "prompt", "sealed-test"]
    page, markdown, text, data = rendered(about)
    for each in report.blocks:
        assert f'<section id="{each.id}">' in page
        assert f'"id":"{each.id}"' in data
        assert not each.title or each.title in re.sub(r"\\(.)", r"\1", markdown)
    assert page.count("<svg") == len(ALL_FIGURES)
    for each in report.figures:
        assert f"(figures/{each.id}.svg)" in markdown
    assert "On the held-out test it scores 90.0%" in text
    assert 'class="removed"' in page
    assert 'class="green"' in page
    assert "Solve the problem {+step by step." in markdown
    assert "[-give-]" in markdown


@pytest.mark.slow
def test_nothing_that_a_model_wrote_runs() -> None:
    for form in rendered(evolved(whole())):
        assert "\x1b" not in form
    page = rendered(evolved(whole()))[0]
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert "A &lt;run&gt;" in page


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("found", "drawn"),
    [
        (nothing(), ["genealogy", "front", "spending"]),
        (analysis({name: SCORES[name] for name in ("seed", "evolution")}), FIGURES),
        (analysis(SCORES, [searched(winner=0), searched("random", winner=1)]), FIGURES),
        (analysis({name: [0.5] * 10 for name in SCORES}), FIGURES),
        (
            msgspec.structs.replace(analysis(SCORES), gains=(), front=()),
            ["accuracies", "curves", "genealogy", "front", "spending"],
        ),
    ],
    ids=["everything missing", "no baselines", "one finalist", "scores in between", "no gains and no front"],
)
def test_what_is_missing_does_not_break_the_report(found: Analysis, drawn: list[str]) -> None:
    about = evolved(found)
    assert [each.id for each in report_of(about).figures] == list(drawn)
    for form in rendered(about)[:3]:
        assert "None" not in form
        assert "nan" not in form


def test_the_evolved_prompt_is_shown_word_by_word_and_what_changed() -> None:
    prompt, changes = block(evolved(), "prompt"), block(evolved(), "changes")
    assert isinstance(prompt, Text)
    assert isinstance(changes, Text)
    assert (prompt.passages[0].text, prompt.passages[0].open) == (BEST.text, True)
    (shown,) = changes.passages
    marks = {(mark.look, shown.text[mark.start : mark.end]) for mark in shown.marks}
    assert ("removed", "give") in marks
    assert any(look == "green" and words.startswith("step by step.") for look, words in marks)
    same = evolved(analysis(SCORES, [searched(winner=0), searched("random", winner=1)]))
    assert "changes" not in [each.id for each in report_of(same).blocks]


def test_figures_are_those_of_the_analysis() -> None:
    about = evolved()
    found = table(about, "sealed-test")
    assert column(found, "prompt") == ["seed prompt", "evolved prompt", "random search"]
    for tested, cell in zip(about.analysis.tested, column(found, "sealed test"), strict=True):
        assert cell == Estimate(tested.accuracy, tested.low, tested.high)
    assert column(found, "n") == [10, 10, 9]
    assert column(found, "missing") == [0, 0, 1]
    assert column(found, "verdict") == ["better", "", "no significant difference"]
    gains = [Estimate(each.value, each.low, each.high) for each in about.analysis.gains]
    assert column(found, "gain over it") == [gains[0], None, gains[1]]
    assert column(table(about, "gains"), "gain") == gains
    assert column(table(about, "spending"), "API efficiency") == [0.65, 0.65], "13 asks of 20"
    assert table(about, "spending").title == "Racing and skipped duplicates saved 35.0% of the evolution's requests"
    assert column(table(about, "fates"), "lives") == [3, 3]
    assert column(table(about, "failed-births"), "birth") == [5, 5]
    assert table(about, "genealogy").title == "The winner, candidate 3, is 2 steps from the seed prompt"
    figures = block(about, "key-figures")
    assert isinstance(figures, KeyFigures)
    assert [each.value for each in figures.figures[:3]] == ["90.0%", "+80.0", "+11.1"]


def test_steps_from_the_seed_to_the_winner() -> None:
    found = block(evolved(), "lineage")
    assert isinstance(found, Text)
    assert [each.title.partition(":")[0] for each in found.passages] == [
        *("#0, a seed prompt", "#1, by reflect", "#3, by combine, second parent #0"),
    ]
    assert found.passages[0].text == SEED.text


def test_a_fitness_of_several_parts_is_no_percentage() -> None:
    about = evolved(settings=msgspec.structs.replace(evolved().settings, fitness=COMPOSITE))
    assert ("fitness", "accuracy 0.6, consistency 0.15") in [
        (row[0], ", ".join(str(row[1]).split(", ")[:2])) for row in table(about, "settings").rows
    ]
    drawn = block(about, "curves")
    assert isinstance(drawn, Figure)
    assert drawn.columns["best"] == "number.3"
    svg = svg_of(drawn)
    assert "fitness in training" in svg
    assert "%" not in "".join(re.findall("<text.*?</text>", svg))


@pytest.mark.slow
def test_several_models_are_told_apart() -> None:
    settings = msgspec.structs.replace(evolved().settings, models=("one", "two"))
    found = analysis(SCORES)
    by = msgspec.structs.replace(found.tested[1], by_model={"one": 0.25, "two": None})
    about = evolved(
        msgspec.structs.replace(found, tested=(found.tested[0], by, found.tested[2])), settings, solution=Solution
    )
    shown = table(about, "sealed-test")
    assert column(shown, "one") == [None, 0.25, None]
    assert {"one", "two"} <= set(shown.brief_columns)
    assert all(rendered(about))


def test_the_front_has_all_finalists_with_those_on_it_first() -> None:
    found = table(evolved(), "front")
    assert column(found, "number") == [1, None, None]
    assert column(found, "found by")[0] == "evolution #3"
    assert found.title == "1 of 3 finalists is on the Pareto front of score and tokens: 50.0% at 43 tokens"


def test_the_prompt_to_deploy_may_be_that_of_another_search() -> None:
    about = evolved(whole(shipped="random"))
    prompt, figures = block(about, "prompt"), block(about, "key-figures")
    assert isinstance(prompt, Text)
    assert isinstance(figures, KeyFigures)
    (shown,) = prompt.passages
    assert (shown.title, shown.text) == (
        "The prompt to deploy (candidate 1, found by random search)",
        about.named("random").genome.text,
    )
    assert [(each.value, each.label) for each in figures.figures[:3]] == [
        ("88.9%", "prompt found by random search, held-out test"),
        ("+88.9", "points over seed prompt"),
        ("−11.1", "points over evolved prompt"),
    ]
    others = block(about, "prompts")
    assert isinstance(others, Text)
    assert [each.title for each in others.passages] == ["Seed prompt 1", "Prompt found by the evolution"]


def test_the_seed_prompt_can_be_deployed(tmp_path: Path) -> None:
    about = evolved(whole(shipped="seed"))
    prompt = block(about, "prompt")
    assert isinstance(prompt, Text)
    assert prompt.passages[0].title == "The prompt to deploy (seed prompt)"
    assert "changes" not in [each.id for each in report_of(about).blocks]
    write_report(tmp_path, about)
    assert (tmp_path / "best_prompt.txt").read_bytes() == SEED.text.encode()


def test_what_each_sentence_contributes() -> None:
    found = table(evolved(whole()), "parts")
    assert column(found, "contributes") == [Estimate(0.25, 0.05, 0.45), Estimate(-0.25, -0.45, -0.05), Estimate(None)]
    assert column(found, "text")[0] == "Solve the problem step by step."
    without = block(evolved(whole(parts=(), why_no_parts="switched off")), "parts")
    assert isinstance(without, Text)
    assert without.lines == ["Not measured: switched off."]


def test_a_polish_that_is_kept_and_one_that_is_not() -> None:
    rejected = block(evolved(whole()), "polish")
    assert isinstance(rejected, Text)
    assert rejected.title == "The polished prompt is not used"
    assert rejected.lines[0].endswith(
        "It scores 25.0% on the validation set, and the chosen prompt 50.0%, so the chosen prompt is kept."
    )
    new = Genome("Solve the problem step by step.")
    search = searched()
    polished = msgspec.structs.replace(search, finalists=(Finalist(3, new, 0.5, 0.75, 9.0), *search.finalists))
    about = evolved(
        whole(analysis(SCORES, [polished, searched("random", winner=1)]), polish=Polish(new, 0.5, 0.75, True))
    )
    kept, prompt, steps = (block(about, name) for name in ("polish", "prompt", "lineage"))
    assert isinstance(kept, Text)
    assert isinstance(prompt, Text)
    assert isinstance(steps, Text)
    assert kept.title == "The polished prompt is used"
    assert prompt.passages[0].title == "The prompt to deploy (candidate 3, found by the evolution, polished)"
    assert steps.passages[-1].title == "#3, polished"


def test_operators_have_what_they_used_and_gained() -> None:
    search = searched()
    search = msgspec.structs.replace(
        search, members=tuple(msgspec.structs.replace(each, asks=10) for each in search.members)
    )
    found = table(evolved(analysis({name: SCORES[name] for name in ("seed", "evolution")}, [search])), "operators")
    assert column(found, "operator") == ["reflect", "combine", "insert", "seed", "swap"]
    assert column(found, "births") == [2, 1, 1, 1, 1]
    assert column(found, "asks") == [20, 10, 10, 10, 10]
    assert column(found, "gain") == pytest.approx([0.1, 0.2, 0.0, 0.0, 0.0])


def test_a_run_that_is_not_complete_has_a_small_report() -> None:
    about = evolved()
    best = Best(genome=BEST, found_by="evolution", train=0.75, problems=4, births=9, asks=40)
    run = msgspec.structs.replace(summarise(about.record), status="partial", error="the budget is used up")
    moments = (Moment(1, 4, 0.25, 0.25, 0.0), Moment(9, 40, 0.75, 0.5, 0.25))
    for curve, figures in (((), []), (moments, ["curves"])):
        found = Unfinished(about.record, about.settings, msgspec.structs.replace(best, curve=curve), run)
        shown = {each.id: each for each in unfinished_blocks(found)}
        assert [name for name, each in shown.items() if isinstance(each, Figure)] == figures
        text, prompt = shown["findings"], shown["prompt"]
        assert isinstance(text, Text)
        assert isinstance(prompt, Text)
        assert text.lines[0] == "The run is not complete (status partial: the budget is used up)."
        assert text.lines[1].endswith("is the prompt found by the evolution. It scores 75.0% in training (n 4).")
        assert text.lines[-1] == "To resume the run with a larger limit: groundswell runs resume 'A <run>'"
        assert prompt.passages[0].text == BEST.text
    seed = Unfinished(about.record, about.settings, msgspec.structs.replace(best, genome=SEED), run)
    lines = next(each for each in unfinished_blocks(seed) if isinstance(each, Text)).lines
    assert lines[1].startswith("The best prompt so far is the seed prompt. It scores 75.0%")
    nothing_yet = Unfinished(about.record, about.settings, Best(genome=SEED, found_by="seed"), run)
    lines = next(each for each in unfinished_blocks(nothing_yet) if isinstance(each, Text)).lines
    assert lines[1] == "No score is stored yet, so the best prompt so far is the seed prompt."


def said(about: Evolved, number: int) -> dict[str, Message]:
    items = list(transcripts_block(about).items())
    return {message.speaker: message for message in items[number].messages}


def test_every_problem_of_the_sealed_test_has_a_transcript() -> None:
    about = evolved()
    shown = transcripts_block(about)
    items = list(shown.items())
    assert [item.title.partition(":")[0] for item in items] == [f"Problem {at}" for at in range(10)]
    outcomes = [item.outcome for item in items]
    assert outcomes == ["evolved right, seed wrong"] * 9 + ["seed right, evolved wrong"]
    assert [item.tags["whose reply is right"] for item in items[7:]] == [
        *(["evolved prompt", "random search"], ["evolved prompt"], ["seed prompt"]),
    ]
    assert set(shown.filters) == set(items[0].tags)
    assert all(item.key.endswith(f"/{at}") for at, item in enumerate(items))
    messages = said(about, 0)
    assert list(messages) == ["problem", "seed prompt", "evolved prompt", "random search"]
    assert messages["problem"].note == "correct answer: 0"
    assert (messages["seed prompt"].note, messages["evolved prompt"].note) == ("wrong", "right")
    (mark,) = messages["evolved prompt"].marks
    assert (messages["evolved prompt"].text[mark.start : mark.end], mark.look) == ("0", "green")
    example = shown.example
    assert example is not None
    assert example() == items[0]


def test_replies_that_are_missing_are_said_to_be() -> None:
    last = list(transcripts_block(evolved()).items())[-1]
    assert last.notes == (f"The reply for random search is missing: timeout: too late {EVIL}",)
    assert last.tags["missing"] == ["random search"]
    bare, *_ = transcripts_block(evolved(solution=Solution)).items()
    assert bare.notes[0] == "The trial for seed prompt is not in the store."
    assert [message.speaker for message in bare.messages] == ["problem"]

    def without_reply(key: str, model: str) -> Solution:
        return Solution(key, model, Solved(1.0, "7") if key.endswith("/0") else Solved(0.0, "7", said="... is 7"))

    first, second, *_ = transcripts_block(evolved(solution=without_reply)).items()
    assert first.notes[0] == "The reply for seed prompt is not in the store. It was right."
    assert (second.messages[1].text, second.notes) == ("... is 7", ())
    assert second.messages[1].note == "wrong; only the end of the reply is stored"


def test_searches_that_came_to_the_same_prompt_speak_as_one() -> None:
    scores = {"seed": SCORES["seed"], "evolution": SCORES["evolution"], "random": SCORES["evolution"]}
    messages = said(evolved(analysis(scores, [searched(), searched("random")])), 0)
    assert list(messages) == ["problem", "seed prompt", "evolved prompt and random search"]


def test_outcomes_of_scores_in_between() -> None:
    scores: dict[str, list[float | None]] = {
        "seed": [0.5, 0.0, 0.5, 1.0, 0.0],
        "evolution": [0.75, 0.0, 0.5, 0.5, None],
    }
    found = analysis({name: some * 2 for name, some in scores.items()})
    outcomes = [item.outcome for item in transcripts_block(evolved(found)).items()]
    assert outcomes[:5] == [
        *("evolved scores higher", "both wrong", "equal scores", "seed scores higher", "score missing"),
    ]


@pytest.mark.slow
def test_five_thousand_births_make_a_page_that_can_be_read() -> None:
    about = evolved(large())
    assert len(page_of(report_of(about))) < 500_000
    steps = block(about, "lineage")
    assert isinstance(steps, Text)
    assert [each.open for each in steps.passages].count(True) == 8, "steps of a long line are folded"


@pytest.mark.slow
def test_the_report_is_the_same_whenever_it_is_written(tmp_path: Path) -> None:
    once, again = write_report(tmp_path / "a", evolved()), write_report(tmp_path / "b", evolved())
    assert once.page == tmp_path / "a" / "report.html"
    assert [each.name for each in once.files] == [each.name for each in again.files]
    for one, other in zip(once.files, again.files, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name
    assert once.page.read_bytes() == (tmp_path / "b" / "report.html").read_bytes()
    assert (tmp_path / "a" / "best_prompt.txt").read_bytes() == BEST.text.encode()

    fewer = write_report(tmp_path / "b", evolved(nothing()))
    assert not (tmp_path / "b" / "figures" / "gains.svg").exists(), "drawings of an earlier report go"
    assert all(each.exists() for each in fewer.files)
