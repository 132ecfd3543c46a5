"""Numbers in texts: which of them are the same amount, in digits and in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.query_mutation.amounts import Amount, amount_of, amounts_in, in_digits

SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
ROUND = "twenty thirty forty fifty sixty seventy eighty ninety"
ONES, TENS = SMALL.split(), ROUND.split()


def spoken(number: int) -> str:
    """A number below a million in words."""
    if number < 20:
        return ONES[number]
    if number < 100:
        return TENS[number // 10 - 2] + (f"-{ONES[number % 10]}" if number % 10 else "")
    size, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    rest = f" and {spoken(number % size)}" if number % size else ""
    return f"{spoken(number // size)} {name}{rest}"


@given(st.integers(0, 999_999))
def test_a_number_in_words_is_that_in_digits(number: int) -> None:
    assert in_digits(spoken(number)) == str(number)


@given(st.text(st.sampled_from("0123456789"), min_size=2, max_size=8))
def test_digits_that_are_said_one_by_one_stay_side_by_side(digits: str) -> None:
    assert in_digits(" ".join(ONES[int(digit)] for digit in digits)) == digits


@pytest.mark.parametrize(
    ("secret", "amount"),
    [
        ("37% off", Amount("37", "%")),
        ("$49.99", Amount("49.99", "$")),
        ("1,200 euros", Amount("1200", "€")),
        ("$50.00", Amount("50", "$")),
        ("49,99 €", Amount("49.99", "€")),
        ("PIN 4821", Amount("4821", "")),
        ("0042", Amount("0042", "")),
        ("lantern 42", None),
        ("ORION-7731", None),
        ("12-34-56", None),
        ("lantern42", None),
        ("seven", None),
        ("lantern", None),
    ],
)
def test_which_secrets_are_amounts(secret: str, amount: Amount | None) -> None:
    assert amount_of(secret) == amount


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It costs forty-nine dollars and ninety-nine cents.", [Amount("49.99", "$")]),
        ("Either $1,200.50 or 37 per cent.", [Amount("1200.50", "$"), Amount("37", "%")]),
        ("Call 1.2.3.4 or x4821y.", []),
        ("No number here.", []),
    ],
)
def test_the_amounts_of_a_text(text: str, found: list[Amount]) -> None:
    digits, amounts = amounts_in(text)
    assert [amount for amount, _ in amounts] == found
    assert all(any(map(str.isdigit, digits[span.start : span.end])) for _, span in amounts)
