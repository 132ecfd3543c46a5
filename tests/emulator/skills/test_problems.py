"""Word problems: what the grammar covers is solved exactly, what it does not is left alone."""

from __future__ import annotations

from fractions import Fraction
from operator import add, mul, sub

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.emulator.chance import Chance
from groundswell.emulator.skills import arithmetic, landscape, problems, solving
from groundswell.emulator.skills.problems import solve, written
from tests.emulator.skills import word_problems

SOLVED = {
    "Ana has 12 apples. She buys 5 more, gives 3 to Ben. How many apples does she have?": 14,
    "Ana has 12 apples. She buys 5 more, then gives 3 to Ben and eats 2. How many are left?": 12,
    "There are 7 boxes with 6 pens each. How many pens are there?": 42,
    "Tom packs 7 boxes of 6 pens. How many pens are there in all?": 42,
    "Ben has 8 marbles. Ana has twice as many marbles as Ben. How many marbles do they have together?": 24,
    "Ben has 8 marbles. Ana has 3 times as many as Ben. How many does Ana have?": 24,
    "Ben has 8 marbles. Ana has 5 more than Ben. How many does Ana have?": 13,
    "Ben has 8 marbles. Ana has 5 fewer than Ben. How many does Ana have?": 3,
    "Mia has 20 cookies. She gives half of them to Leo. How many cookies does Mia have left?": 10,
    "Mia has 24 cookies. She shares them equally among 4 friends. How many does each get?": 6,
    "24 cookies are shared equally among 4 children. How many cookies does each child get?": 6,
    "Leo buys 3 pens at 4 dollars each. How much does he pay?": 12,
    "Leo has 50 dollars. He buys 3 pens at $4 each. How much money is left?": 38,
    "Leo buys 3 pens at $4 each and 2 books at $10 each. How much does he spend?": 32,
    "A train travels 60 km an hour for 3 hours. How far does it go?": 180,
    "A car drives at 60 miles per hour for 2.5 hours. How far does it travel?": 150,
    "Jo saves 5 dollars a week for 6 weeks. How much does she have?": 30,
    "Noah earns 15 dollars an hour. He works 8 hours. How much does he earn?": 120,
    "A coat costs 80 dollars. It is sold at 20% off. What is the price now?": 64,
    "What is 20% of 150?": 30,
    "Sara had twenty-one stickers. She lost nine of them. How many stickers does she have now?": 12,
    "Each box holds 12 eggs. A farmer fills 5 boxes. How many eggs are there?": 60,
    "A ticket costs 12 dollars. How much do 5 tickets cost?": 60,
    "Tim has 30 cards. He loses a third of them. How many are left?": 20,
    "Max has 10 coins. He doubles them, then loses 4. How many coins does he have?": 16,
    "A shop has 120 shirts. It sells 45 on Monday and 30 on Tuesday. How many shirts are left?": 45,
    "Ana has 5 apples. Ben has 7 apples. How many apples do they have together?": 12,
    "Ana has 5 apples. Ben has 9 apples. How many more apples does Ben have than Ana?": 4,
    "There are 30 students. 12 leave and 5 arrive. How many students are there now?": 23,
    "Maria has 3 bags with 8 oranges each. She eats 4 oranges. How many are left?": 20,
    "A town had 1,200 trees. It lost two dozen in a storm. How many trees are left?": 1176,
    "Ana has twice as many coins as Ben. Ben has 8 coins. How many coins do they have together?": 24,
    "Ben has 8 coins. Ana has 3 times as many. How many coins do they have together?": 32,
    "What is 3 + 4 * 2?": 11,
    "Calculate (12 - 4) × 3": 24,
    "12*7 =": 84,
    "2 - -3": 5,
}
UNREAD = [
    "How many people live in 3 big cities?",
    "I was born in 1987. What is my name?",
    "Weng earns $12 an hour for babysitting. Yesterday, she just did 50 minutes of it. How much did she earn?",
    "What is the meaning of life?",
    "Ana has 12 apples.",
    "There are 7 boxes with 6 pens each on 3 shelves. How many pens are there?",
    "Ben has 8 coins. Carl has 2. Ana has 3 times as many. How many coins do they have together?",
    "Ben has 8 coins. Ana has 3 times as many as Dora. How many coins do they have together?",
    "1 / 0",
    "(1 + 2",
    "1 + 2)",
    "7",
    "Ana has 12 apples. The number 7 is lucky. How many apples does she have?",
    "(" * 200 + "1" + ")" * 200,
    "",
]
COUNTS = st.integers(2, 99)
NAMES = st.sampled_from(["Ana", "Ben", "Carla", "Noah"])
THINGS = st.sampled_from(["apples", "marbles", "books", "stamps", "shells"])
EVENTS = {"buys {0} more": add, "finds {0}": add, "receives {0} from a friend": add, "eats {0}": sub, "sells {0}": sub}


@pytest.mark.parametrize(("problem", "value"), SOLVED.items(), ids=list(SOLVED))
def test_a_problem_is_solved(problem: str, value: int) -> None:
    solution = solve(problem)
    assert solution is not None
    assert solution.value == value
    assert solution.steps[-1].result == value


@pytest.mark.parametrize("problem", UNREAD, ids=lambda problem: problem[:30])
def test_what_is_not_understood_is_left_alone(problem: str) -> None:
    assert solve(problem) is None


def test_problems_inside_the_grammar_are_solved_exactly() -> None:
    wrong = [
        (kind, text, answer, solve(text)) for kind, text, answer in word_problems.told(word_problems.INSIDE, 200, 1)
    ]
    assert [entry for entry in wrong if entry[3] is None or entry[3].value != entry[2]] == []


def test_problems_outside_the_grammar_are_never_solved_wrongly() -> None:
    tried = [
        (kind, text, answer, solve(text)) for kind, text, answer in word_problems.told(word_problems.OUTSIDE, 200, 2)
    ]
    assert [entry for entry in tried if entry[3] is not None and entry[3].value != entry[2]] == []


@given(NAMES, THINGS, COUNTS, st.lists(st.tuples(st.sampled_from(sorted(EVENTS)), COUNTS), min_size=1, max_size=5))
def test_running_quantities_of_any_length_are_solved(
    name: str, thing: str, start: int, events: list[tuple[str, int]]
) -> None:
    told, value = [f"{name} has {start} {thing}."], start
    for event, count in events:
        told.append(f"Then {name} {event.format(count)}.")
        value = EVENTS[event](value, count)
    solution = solve(" ".join([*told, f"How many {thing} does {name} have now?"]))
    assert solution is not None
    assert solution.value == value


@given(COUNTS, COUNTS, COUNTS, st.sampled_from(["with {0} pens each", "of {0} pens", "that hold {0} pens each"]))
def test_groups_and_what_comes_after_are_solved(boxes: int, pens: int, used: int, form: str) -> None:
    solution = solve(f"There are {boxes} boxes {form.format(pens)}. A class uses {used} pens. How many pens are left?")
    assert solution is not None
    assert solution.value == boxes * pens - used


@given(COUNTS, st.integers(1, 99))
def test_discounts_are_exact(price: int, percent: int) -> None:
    solution = solve(f"A coat costs {price} dollars. It is on sale for {percent}% off. What does it cost now?")
    assert solution is not None
    assert solution.value == Fraction(price * (100 - percent), 100)


@given(
    st.recursive(
        st.integers(0, 99).map(str),
        lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        max_leaves=8,
    )
)
def test_arithmetic_has_precedence_and_brackets(expression: str) -> None:
    worked = arithmetic.evaluate(expression)
    assert (worked[-1][3] if worked else int(expression)) == eval(expression)


@given(st.lists(st.tuples(st.sampled_from([add, sub, mul]), COUNTS), min_size=1, max_size=6), COUNTS)
def test_arithmetic_without_brackets_agrees_with_python(parts: list[tuple[object, int]], first: int) -> None:
    signs = {add: "+", sub: "-", mul: "*"}
    expression = str(first) + "".join(f" {signs[sign]} {number}" for sign, number in parts)  # type: ignore[index]
    worked = arithmetic.evaluate(expression)
    assert worked is not None
    assert worked[-1][3] == eval(expression)


@given(st.sampled_from(sorted(SOLVED)), st.binary(max_size=4))
def test_a_slip_is_never_right_and_its_steps_end_in_it(problem: str, key: bytes) -> None:
    solution = solve(problem)
    assert solution is not None
    wrong = problems.slipped(solution, Chance(key))
    assert wrong.value != solution.value
    assert wrong.steps[-1].result == wrong.value
    assert len(wrong.steps) == len(solution.steps)


@given(st.text(max_size=200))
def test_any_text_is_either_solved_or_not(text: str) -> None:
    solution = solve(text)
    assert solution is None or 0.1 <= problems.difficulty(text, solution) <= 0.9


def test_difficulty_is_a_property_of_the_problem() -> None:
    easy, hard = "What is 2 + 3?", "What is 2 + 3 * 1234 - 17 * 3 + 99999 * 12 - 4?"
    levels = [problems.difficulty(text, solution) for text in (easy, hard) if (solution := solve(text))]
    assert levels[0] < levels[1]
    assert levels[0] == problems.difficulty("  what is 2 +\n3?", solve(easy) or pytest.fail("unsolved"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(7), "7"),
        (Fraction(5, 2), "2.5"),
        (Fraction(1, 3), "0.33"),
        (Fraction(-3), "-3"),
        (Fraction(2, 3), "0.67"),
    ],
)
def test_numbers_are_written_as_people_write_them(value: Fraction, text: str) -> None:
    assert written(value) == text


PROBLEM = "Ana has 12 apples. She buys 5 more. How many apples does she have?"


@pytest.mark.parametrize(
    ("system", "last", "instructions", "problem"),
    [
        ("Think.", PROBLEM, "Think.", PROBLEM),
        ("", f"Think.\n\nProblem: {PROBLEM}", "Think.", PROBLEM),
        ("", f"Think.\n\n{PROBLEM}", "Think.", PROBLEM),
        ("", f"Think hard. {PROBLEM} Use steps.", "Think hard. Use steps.", PROBLEM),
        ("S", f"Q: One and 1? A: 2\n\nQ: {PROBLEM}\nA:", "S\nQ: One and 1? A: 2", PROBLEM),
    ],
    ids=["system", "marked", "paragraph", "sentences", "examples"],
)
def test_the_problem_is_told_from_the_instructions(system: str, last: str, instructions: str, problem: str) -> None:
    task = solving.task_in(system, last)
    assert task.problem == problem
    assert task.instructions.split() == instructions.split()


@pytest.mark.parametrize(
    ("instructions", "form"),
    [
        ("End with #### n", "#### {0}"),
        ("Use \\boxed{}", "\\boxed{{{0}}}"),
        ("Write Answer: n", "Answer: {0}"),
        ("Give only the number", "{0}"),
        ("Solve it", solving.PLAIN),
        ("Give only the number. End with #### n", "#### {0}"),
    ],
)
def test_the_form_named_last_is_used(instructions: str, form: str) -> None:
    assert solving.form_in(instructions) == form


def test_how_often_an_answer_is_right_is_what_the_landscape_says() -> None:
    n = 1500
    for prompt in (landscape.SEED_PROMPT, landscape.OPTIMUM):
        task = solving.Task(prompt, PROBLEM)
        solution = solve(PROBLEM)
        assert solution is not None
        likely = landscape.chance(landscape.ability(prompt), problems.difficulty(PROBLEM, solution))
        right = sum(solving.attempt(task, 1.0, Chance(b"%d" % at)).right for at in range(n))
        assert abs(right / n - likely) < 4 * (likely * (1 - likely) / n) ** 0.5
