"""The table of forms that an answer may stand in, and what counts as the same answer."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundswell.experiments.prompt_evolution.answers import extracted, number_in, same_number, same_text, says
from groundswell.experiments.prompt_evolution.metrics import contains, number, text
from groundswell.experiments.prompt_evolution.problems import Problem

STYLES = {
    # After the marker of GSM8K
    "hashes": ("3 + 4 = 7\n#### 7", "7"),
    "last hashes": ("#### 5 is wrong, so\n#### 7", "7"),
    "hashes, money": ("#### $1,200.00", "1200"),
    "hashes, negative": ("#### -3", "-3"),
    "hashes, sign and space": ("#### - 3", "-3"),
    "hashes, unit": ("#### 7 pens", "7"),
    "hashes, remark": ("#### 18 (after 7 days)", "18"),
    "hashes, remark without brackets": ("#### 18 after 7 days", "18"),
    "hashes, equation": ("#### 5 + 3 = 18", "18"),
    "hashes, chain of equations": ("#### 2 x 3 = 6, 6 + 12 = 18", "18"),
    "hashes, equation backwards": ("#### 18 = 16 + 2", "18"),
    "hashes, variable": ("#### x = 18", "18"),
    "hashes, label": ("#### Final answer: 18", "18"),
    "hashes, sentence": ("#### The answer is 18.", "18"),
    "hashes, bold": ("#### **18**", "18"),
    "hashes, closed": ("#### 18 ####", "18"),
    "hashes, next line": ("5 + 13 = 18\n####\n18", "18"),
    "heading and line": ("#### Final answer\n18", "18"),
    "heading and blank line": ("#### Final Answer:\n\n**18 pens**\n", "18"),
    "headings of steps": ("#### Step 1: Add\n5 + 13 = 18\n#### Step 2: Check\nIt fits.\n#### Conclusion\nSo 18.", "18"),
    "numbered headings": ("#### 1. Add\n5 + 4 = 9\n#### 2. Double\n2 x 9 = 18", "18"),
    "heading of second level": ("## Answer\n\n18", "18"),
    "bold heading": ("**Final Answer**\n\nTom has 18 pens.", "18"),
    # LaTeX
    "boxed": (r"So we get \boxed{7}.", "7"),
    "boxed fraction": (r"$\boxed{\frac{1}{2}}$", "1/2"),
    "boxed short fraction": (r"\boxed{\frac12}", "1/2"),
    "boxed negative fraction": (r"\boxed{-\dfrac{1}{2}}", "-1/2"),
    "boxed mixed number": (r"\boxed{2\frac{1}{2}}", "5/2"),
    "boxed separator": (r"\boxed{1{,}200}", "1200"),
    "boxed thin space": (r"\boxed{1\,200}", "1200"),
    "boxed unit": (r"\boxed{12 \text{ cm}}", "12"),
    "boxed square unit": (r"\boxed{12 \text{ cm}^2}", "12"),
    "boxed degrees": (r"\boxed{90^\circ}", "90"),
    "boxed money": (r"\boxed{\$18.50}", "18.5"),
    "boxed percentage": (r"\boxed{18\%}", "18"),
    "boxed equation": (r"\boxed{x = 18}", "18"),
    "boxed sentence": (r"\boxed{\text{The answer is } 18}", "18"),
    "boxed bold": (r"\[ \boxed{\mathbf{18}} \]", "18"),
    "display": ("The answer is:\n\n$$18$$", "18"),
    "display over lines": ("The final answer is\n\\[\n18\n\\]", "18"),
    "inline": (r"The answer is \(18\).", "18"),
    "approximately": (r"Final answer: $x \approx 18.5$", "18.5"),
    # Tags and JSON
    "tag": ("<answer> 7 </answer>", "7"),
    "tag over lines": ("<answer>\n3 x 6 = 18\n18 pens\n</answer>", "18"),
    "tag that is not closed": ("3 x 6 = 18\n<answer>18", "18"),
    "tag of a final answer": ("<final_answer>18</final_answer>", "18"),
    "json": ('{"answer": 7}', "7"),
    "json text": ('{"reasoning": "3 and 4", "answer": "7"}', "7"),
    "json equation": ('{"answer": "16 + 2 = 18"}', "18"),
    "json, LaTeX": (r'{"answer": "\\frac{1}{2}"}', "1/2"),
    "json, LaTeX without escape": (r'{"answer": "\frac{1}{2}"}', "1/2"),
    "json in a fence": ('```json\n{"steps": [5, 13], "final_answer": 18}\n```', "18"),
    "dictionary": ("{'answer': 18, 'n': 2}", "18"),
    # Labels
    "label": ("Answer: 7", "7"),
    "bold label": ("**Answer:** 7", "7"),
    "bold label and answer": ("Final answer: **7**.", "7"),
    "the answer is": ("The answer is 7.", "7"),
    "the answer is, colon": ("The answer is: 7", "7"),
    "the final answer is": ("The final answer is $7.50.", "7.5"),
    "the answer is, equation": ("The answer is 16 + 2 = 18.", "18"),
    "the answer is, reason": ("The answer is 7, since 3 + 4 = 7 and not 8.", "7"),
    "the answer is, because": ("The answer is that he has 18 pens because 3 boxes hold 6 each.", "18"),
    "the answer is, clause": ("The answer to the question of how many pens he has is 18.", "18"),
    "the answer would be": ("So the answer would be 18 pens.", "18"),
    "the answer is, calculation in words": ("The answer is 9 times 2 is 18.", "18"),
    "the answer is, more sentences": ("The answer is 18. He has 3 boxes of 6.", "18"),
    "the answer is, not": ("The answer is 18, not 20.", "18"),
    "the answer is not, it is": ("The answer is not 20, it is 18.", "18"),
    "corrected": ("The answer is 20. Wait, no. The answer is 18.", "18"),
    "label, sentence": ("Answer: Tom has 3 boxes, so 12 pens.", "12"),
    "label, remark": ("Answer: 12 pens (3 boxes of 4)", "12"),
    "label, remark with comma": ("Answer: 12 pens, 3 boxes of 4", "12"),
    "label, sum made": ("Answer: 3 boxes of 4 pens make 12 pens.", "12"),
    "label, check": ("Answer: 18. Check: 18 - 13 = 5", "18"),
    "label, explanation": ("Answer: Tom has 18 pens.\nExplanation: 3 boxes hold 6 each, 3 x 6 = 18, not 9.", "18"),
    "label, aside below": ("Answer: Tom has 18 pens.\n\nHe has 3 boxes of 6.", "18"),
    "label, worked solution": ("Answer: Tom has 3 boxes.\nEach has 6 pens.\nSo he has 3 x 6 = 18 pens.", "18"),
    "label, steps": ("Answer:\n1. Tom has 3 boxes.\n2. Each has 6 pens.\n3. In total he has 18.", "18"),
    "label, equations": ("The answer is\n\n2x = 36\nx = 18\n", "18"),
    "label, equation over lines": ("The answer is\n\n9 x 2 =\n\n18", "18"),
    "label in a remark": ("We express the answer as a percentage: 9 / 10 = 90%\nThen 100% - 90% = 10%", "10"),
    "label, bullet": ("Answer:\n- 18", "18"),
    "label, dash": ("Final answer – 18", "18"),
    "label, negative": ("Answer: -18", "-18"),
    "label, arrow": ("Answer -> 18", "18"),
    "label, equals": ("Answer = 18", "18"),
    "label, unit in brackets": ("Answer (in dollars): 18", "18"),
    "label, about": ("Answer: about 18 pens", "18"),
    "label, choice": ("The correct answer is (B) 18.", "18"),
    "below": ("The answer is below:\n\n18", "18"),
    "pleasantry": ("The answer is 18. I hope this answer is helpful!", "18"),
    "result": ("The result is 1,234,567.", "1234567"),
    "solution above": ("Solution:\nTom has 3 boxes of 6.\nThe answer is 18.", "18"),
    # After thoughts
    "thoughts": ("<think>Is it 20? The answer is 20.</think>\nThe answer is 18.", "18"),
    "thoughts that were begun by the prompt": ("Is it #### 20?\n</think>\n\n18", "18"),
    "two thoughts": ("<think>20</think>19<think>21</think>18", "18"),
    # Without a mark
    "equation": ("3 + 4 = 7", "7"),
    "bold after equation": ("She had 3 and got 4.\n3 + 4 = **7**", "7"),
    "number": ("7", "7"),
    "sentence": ("So there are 7 pens left.", "7"),
    "several numbers": ("First 3, then 4, which makes 7", "7"),
    "bold number": ("So he has **18 pens** left after 7 days.", "18"),
    "bold in a list": ("**1.** He has 3 boxes.\n**2.** He has 18 pens.", "18"),
    "remark at the end": ("So he has 18 pens left (after giving 7 away).", "18"),
    "minus sign": ("−7", "-7"),
    "percentage": ("It is 50%.", "50"),
    "fraction": ("Answer: 1/2", "0.5"),
    "exponent": ("1.5e3", "1500"),
    "blanks": (" 12 ", "12"),
    "and in words": ("The answer is 18. The answer (in words) is eighteen.", "18"),
    "only in words": ("3 x 6 = 18 pens\nTherefore, the answer is eighteen pens.", "18"),
    "calculation, or its value": ("That means he has 13 + 5, or 18 pens in total.", "18"),
    "calculation in words, or its value": ("That is 9 times 2, or 18.", "18"),
    "two notations": ("The answer is 8/10 or 4/5.", "0.8"),
    "equation with a later number": ("So he has 9 x 2 = 18 pens after 7 days.", "18"),
    "reason with equation": ("He needs 18 more to have 20 because 20 - 2 = 18", "18"),
    "purpose": ("He needs 9 * 2 = 18 spoons to make 80 balls.", "18"),
    "comparison": ("He has 18 more pens than 5 of the others.", "18"),
    "unknown and found": ("We do not know x yet.\nBut 2x = 36, so x = 18.", "18"),
    # Numbers
    "mixed number": ("The answer is 2 1/2.", "5/2"),
    "mixed number in words": ("The answer is 2 and 1/2 cups.", "5/2"),
    "mixed character": ("The answer is 2½ cups.", "5/2"),
    "fraction character": ("Answer: ¾", "3/4"),
    "negative mixed number": ("Answer: -2 1/2", "-5/2"),
    "million": ("The answer is $1.5 million.", "1500000"),
    "thousand": ("Answer: 12 thousand people", "12000"),
    "short million": ("Answer: $1.5M", "1500000"),
    "short thousand": ("Answer: £20k", "20000"),
    "minus in words": ("The temperature is minus 7 degrees.", "-7"),
    "negative in words": ("Answer: negative 7", "-7"),
    "minus as operator": ("Answer: 10 minus 3 = 7", "7"),
    "negative money": ("Answer: -$18", "-18"),
    "negative money, currency first": ("Answer: $-18", "-18"),
    "abbreviated currency": ("Answer: Rs.18", "18"),
    "Indian separators": ("Answer: 12,34,567", "1234567"),
    "blank as separator": ("Answer: 1 234 567 people", "1234567"),
    "scientific": ("The answer is 1.5 × 10^3.", "1500"),
    "scientific, LaTeX": (r"\boxed{1.5 \times 10^{3}}", "1500"),
    "scientific, raised": ("Answer: 1.5 × 10³", "1500"),
    "no leading digit": ("Answer: .5", "1/2"),
    "square unit": ("Answer: 18 m²", "18"),
}
WRONG = {
    "nothing": ("", "7"),
    "no number": ("I do not know.", "7"),
    "denied": ("The answer is not 18.", "18"),
    "denied, short": ("The answer isn't 18.", "18"),
    "denied, instead": ("It is 20 rather than 18", "18"),
    "denied after equation": ("5 + 13 = 18\nThe answer is not 18.", "18"),
    "either": ("The answer is 17 or 18.", "18"),
    "either, without label": ("It is 17 or 18.", "18"),
    "either, with unit": ("The answer is 18 pens or 20 pens.", "18"),
    "range": ("Answer: 17-18", "18"),
    "range in words": ("Answer: 18 to 20", "18"),
    "between": ("The answer is between 17 and 18.", "18"),
    "two quantities": ("Answer: 18 pens and 6 pencils", "18"),
    "list": ("Answer: 18, 19, 20", "18"),
    "calculation": ("The answer is 18 + 2.", "18"),
    "calculation, second": ("The answer is 2 + 18", "18"),
    "calculation, product": ("Answer: 1*8", "18"),
    "calculation, without label": ("So the total is 2 + 18", "18"),
    "unfinished equation": ("Answer: 18 + 2 =", "18"),
    "power": ("Answer: 18^2", "18"),
    "exponent": ("Answer: x^18", "18"),
    "root": (r"\boxed{\sqrt{18}}", "18"),
    "multiple of pi": (r"\boxed{18\pi}", "18"),
    "raised digit": ("Answer: 10²", "102"),
    "mixed character": ("Answer: 2½", "21/2"),
    "only thoughts": ("<think>The answer is 18.</think>", "18"),
    "thoughts that were cut off": ("<think>It may be 17, or\nThe answer is 18.", "18"),
    "other after thoughts": ("<think>The answer is 18.</think> #### 20", "18"),
    "unknown": ("5 + 13 = 18. The answer cannot be determined.", "18"),
    "answer in words": ("3 and 18\nThe answer is Paris.", "18"),
    "thousandth": ("Answer: 18 thousand", "18"),
    "number in a name": ("Answer: x18", "18"),
    "pair": (r"\boxed{(18, 3)}", "18"),
}


@pytest.mark.parametrize(("reply", "answer"), STYLES.values(), ids=STYLES)
def test_styles(reply: str, answer: str) -> None:
    found = extracted(reply)
    assert found is not None
    assert same_number(found, answer), found
    assert number(reply, Problem("", answer)) == 1.0


@pytest.mark.parametrize(("reply", "answer"), WRONG.values(), ids=WRONG)
def test_what_must_not_be_read_as_the_answer(reply: str, answer: str) -> None:
    assert number(reply, Problem("", answer)) == 0.0, extracted(reply)


TEXTS = {
    "label": ("Answer: Paris", "Paris"),
    "sentence": ("The answer is Paris.", "Paris"),
    "article and case": ("The answer is the Eiffel tower.", "Eiffel Tower"),
    "number in the text": ("Answer: Route 66", "Route 66"),
    "number in a later sentence": ("The answer is Paris. It has 2 million people.", "Paris"),
    "abbreviation": ("The answer is St. Louis.", "St. Louis"),
    "remark": ("Answer: Paris (the capital of France)", "Paris"),
    "apposition": ("The answer is Paris, the capital of France.", "Paris"),
    "reason": ("The answer is no because it rains.", "No"),
    "sentence after it": ("Yes. It rains.", "yes"),
    "hashes": ("It is in France.\n#### Paris", "Paris"),
    "hashes and more": ("#### Paris\nI hope this helps!", "Paris"),
    "heading": ("### Answer\nParis", "Paris"),
    "boxed": (r"\boxed{\text{Paris}}", "paris"),
    "tag": ("<answer>Paris</answer>", "Paris"),
    "json": ('{"answer": "S\\u00e3o Paulo"}', "São Paulo"),
    "whole reply": ("paris!", "Paris"),
    "after thoughts": ("<think>London?</think>Paris", "Paris"),
    "text of a choice": ("The answer is (C) Paris.", "Paris"),
    "choice": ("The answer is (C).", "C"),
    "choice, bracket": ("C)", "C"),
    "choice, letter": ("c", "C"),
    "choice with text": ("Answer: C. Paris", "C"),
    "choice, colon": ("Answer: C: Paris", "C"),
    "choice, dash": ("Answer: C - Paris", "C"),
    "choice, bold": ("**C**", "C"),
    "choice, bold label": ("**Answer: C) Paris**", "C"),
    "choice, boxed": (r"\boxed{\text{(C)}}", "C"),
    "choice, boxed letter": (r"$\boxed{C}$", "C"),
    "choice, hashes": ("#### C", "C"),
    "choice, json": ('{"answer": "C"}', "C"),
    "choice, option": ("The answer is option C.", "C"),
    "choice, correct option": ("The correct option is (C).", "C"),
    "choice, correct": ("Rome is in Italy. C is correct.", "C"),
    "choice, correct answer": ("Option (C) is the correct answer.", "C"),
    "choice, reason": ("The answer is C because Paris is the capital.", "C"),
    "choice, first line": ("C) Paris\n\nParis is the capital of France.", "C"),
    "choice, last line": ("Paris is the capital of France.\n\nSo it must be (C).", "C"),
    "choice, article": ("The answer is (A).", "A"),
    "choice, article alone": ("A", "A"),
    "choice, gold in brackets": ("The answer is C.", "(C)"),
    "choice, likely": ("Among A through E, the answer is most likely C, a city.", "C"),
    "choice, after thoughts": ("<think>(A) or (B)?</think>\n\n(C)", "C"),
}
WRONG_TEXTS = {
    "other": ("Answer: London", "Paris"),
    "denied": ("The answer is not Paris.", "Paris"),
    "list": ("Answer: Red, white and blue", "red"),
    "only thoughts": ("<think>Paris</think>", "Paris"),
    "signs": ("...", "+"),
    "choice, other": ("The answer is (B).", "C"),
    "choice, denied": ("The answer is not C.", "C"),
    "choice, two": ("The answer is A or C.", "A"),
    "choice, three": ("The answer is A, B, or C.", "A"),
    "choice, either": ("The answer is either (A) Rome or (C) Paris.", "A"),
    "choice, both": ("Answer: A and C", "A"),
    "choice, options repeated": ("A) Rome\nB) London\nC) Paris", "C"),
    "choice, first option repeated": ("A) Rome\nB) London\nC) Paris", "A"),
    "choice, article": ("Answer: A dog", "A"),
    "choice, only an article": ("The", "A"),
    "choice, nothing": ("", "A"),
    "choice, part of a word": ("Answer: Cat", "C"),
}


@pytest.mark.parametrize(("reply", "answer"), TEXTS.values(), ids=TEXTS)
def test_texts(reply: str, answer: str) -> None:
    assert says(reply, answer), extracted(reply)
    assert text(reply, Problem("", answer)) == 1.0


@pytest.mark.parametrize(("reply", "answer"), WRONG_TEXTS.values(), ids=WRONG_TEXTS)
def test_texts_that_are_not_the_answer(reply: str, answer: str) -> None:
    assert text(reply, Problem("", answer)) == 0.0, extracted(reply)


def test_what_only_thoughts_contain() -> None:
    assert contains("<think>London?</think> In Paris.", Problem("", "Paris")) == 1.0
    assert contains("<think>London?</think> In Paris.", Problem("", "London")) == 0.0


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
        ("1 1/0", "1", False),
        ("1 × 10^999999999", "1", False),
        ("5K", "5000", False),
        ("3 million-dollar houses", "3", True),
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
    says(text, text)
    says(text, "C")


PIECES = st.lists(
    st.sampled_from(
        [
            *("####", "\n", " ", "answer", "The answer is", ":", "=", "\\boxed{", "}", "<answer>", "</", "<think>"),
            *("</think>", '"answer": ', '"', "$", "-", "7", "1/2", "0", "e9", ".", ",", "**", "(", ")", "not", "or"),
            *("minus", "million", "½", "²", "^", "\\frac{", "{", "C", ")", "1.", "Step", "\\text{", "since", "and"),
        ]
    ),
    max_size=12,
)


@given(PIECES.map("".join))
def test_nothing_raises_for_pieces_of_answers(text: str) -> None:
    found = extracted(text)
    assert found is None or found.strip()
    same_number(text, text)
    says(text, "C")


def _mixed(number: Fraction) -> str:
    whole, rest = divmod(abs(number), 1)
    sign = "-" if number < 0 else ""
    return f"{sign}{whole} {rest}" if whole and rest else str(number)


NOTATIONS: dict[str, tuple[st.SearchStrategy[Fraction], Callable[[Fraction], str]]] = {
    "digits": (st.integers(-(10**15), 10**15).map(Fraction), str),
    "separators": (st.integers(-(10**15), 10**15).map(Fraction), lambda number: f"{int(number):,}"),
    "LaTeX separators": (st.integers(0, 10**15).map(Fraction), lambda number: f"{int(number):,}".replace(",", "{,}")),
    "money": (st.integers(0, 10**9).map(Fraction), lambda number: f"${int(number):,}.00"),
    "euros": (st.integers(0, 10**9).map(Fraction), lambda number: f"{number} €"),
    "decimals": (st.decimals(-(10**9), 10**9, places=4).map(Fraction), lambda number: f"{float(number):.4f}"),
    "fraction": (st.fractions(-999, 999, max_denominator=99), str),
    "mixed number": (st.fractions(-999, 999, max_denominator=99), _mixed),
    "LaTeX fraction": (
        st.fractions(-99, 99, max_denominator=99).filter(lambda number: number.denominator > 1),
        lambda number: f"{'-' * (number < 0)}\\frac{{{abs(number.numerator)}}}{{{number.denominator}}}",
    ),
    "exponent": (st.integers(-999, 999).map(lambda number: Fraction(number) * 1000), lambda it: f"{int(it) // 1000}e3"),
    "millions": (
        st.integers(-999, 999).map(lambda number: Fraction(number) * 10**6),
        lambda it: f"{it / 10**6} million",
    ),
    "in words": (st.integers(1, 10**6).map(lambda number: Fraction(-number)), lambda number: f"minus {-number}"),
    "unit": (st.integers(-999, 999).map(Fraction), lambda number: f"{number} pens"),
    "percentage": (st.integers(0, 999).map(Fraction), lambda number: f"{number}%"),
}
FORMS = [
    *("{}", "#### {}", "3 + 4 is\n#### {}\n", "#### {} (after 7 days)", "#### 3 + 4 = {}", "\\boxed{{{}}}"),
    *("$\\boxed{{{}}}$", "<answer>{}</answer>", "<answer>{}", '{{"answer": "{}"}}', "Answer: {}", "**Answer:** {}."),
    *("Answer:\n\n{}", "The answer is {}.", "The answer is **{}**.", "The final answer is: {}", "Answer: 3 + 4 = {}"),
    *("Answer: {} (3 of 4)", "The answer is {}, since 3 + 4 = 8.", "## Final answer\n\n{}\n", "x = {}", "So it is {}."),
    *("<think>It is 3.</think>{}", "<think>The answer is 3.</think>\nThe answer is {}.", "It took 3 days: **{}**"),
]


@pytest.mark.parametrize("notation", NOTATIONS)
@given(data=st.data(), form=st.sampled_from(FORMS))
def test_every_number_is_found_in_every_notation_and_form(notation: str, form: str, data: st.DataObject) -> None:
    numbers, written = NOTATIONS[notation]
    value = data.draw(numbers)
    found = extracted(form.format(written(value)))
    assert found is not None
    assert number_in(found) == value, found
