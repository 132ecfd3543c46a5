"""The table of forms that an answer may stand in, and what counts as the same answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.prompt_evolution.answers import extracted, same_number, same_text


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("3 + 4 = 7\n#### 7", "7"),
        ("#### 5 is wrong, so\n#### 7", "7"),
        ("#### $1,200.00", "1200"),
        ("#### -3", "-3"),
        ("#### 7 pens", "7"),
        (r"So we get \boxed{7}.", "7"),
        (r"$\boxed{\frac{1}{2}}$", "1/2"),
        (r"\boxed{1{,}200}", "1200"),
        (r"\boxed{12 \text{ cm}}", "12"),
        ("<answer> 7 </answer>", "7"),
        ('{"answer": 7}', "7"),
        ('{"reasoning": "3 and 4", "answer": "7"}', "7"),
        ("Answer: 7", "7"),
        ("**Answer:** 7", "7"),
        ("Final answer: **7**.", "7"),
        ("The answer is 7.", "7"),
        ("The answer is: 7", "7"),
        ("The final answer is $7.50.", "7.5"),
        ("The answer is 7, since 3 + 4 = 7 and not 8.", "7"),
        ("3 + 4 = 7", "7"),
        ("She had 3 and got 4.\n3 + 4 = **7**", "7"),
        ("7", "7"),
        ("So there are 7 pens left.", "7"),
        ("First 3, then 4, which makes 7", "7"),
        ("−7", "-7"),
        ("It is 50%.", "50"),
        ("Answer: 1/2", "0.5"),
        ("1.5e3", "1500"),
        (" 12 ", "12"),
        ("The result is 1,234,567.", "1234567"),
    ],
)
def test_forms(reply: str, answer: str) -> None:
    found = extracted(reply)
    assert found is not None
    assert same_number(found, answer), found


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize(
    "run", [" ", "=", "= ", "<answer>", "{", "\\boxed{", "1 ", "answer ", '"answer"', "#", "\\frac{"]
)
@pytest.mark.parametrize("form", ["{}", "={} = b", "<answer>{}", "\\boxed{{{}", "The answer is {} b", "#### {} = b"])
def test_a_model_that_runs_wild_is_read_in_no_time(run: str, form: str) -> None:
    """It would take for ever, not long, if a form were looked for in every way in which it might be there."""
    extracted(form.format(run * (6_000 // len(run))))


@pytest.mark.parametrize("reply", ["", "   ", "I do not know.", "####"])
def test_no_answer(reply: str) -> None:
    assert extracted(reply) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("7", "7.0", True),
        ("1,200", "1200", True),
        ("$5", "5", True),
        ("2400/2", "1200", True),
        ("7", "8", False),
        ("0.333", "1/3", False),
        ("seven", "7", False),
        ("3 or 4", "3", False),
        ("1/0", "1/0", False),
        ("1e300", "10e299", True),
        ("1e999999999", "1e999999999", False),
        ("1e-999999999/3", "7", False),
    ],
)
def test_the_same_number(one: str, other: str, same: bool) -> None:
    assert same_number(one, other) is same


def test_the_same_text() -> None:
    assert same_text("The Eiffel Tower.", "eiffel tower")
    assert not same_text("Paris", "London")


@given(st.text())
def test_nothing_raises(text: str) -> None:
    found = extracted(text)
    assert found is None or found.strip()
    same_number(text, text)


@given(st.integers(-(10**12), 10**12))
def test_every_whole_number_is_found(number: int) -> None:
    for form in ("#### {}", "Answer: {}", "\\boxed{{{}}}", "{}", "The answer is {}."):
        found = extracted(form.format(number))
        assert found is not None
        assert same_number(found, f"{number:,}")
