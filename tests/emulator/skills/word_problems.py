"""Word problems with known answers: inside the grammar, where they must be solved, and just outside it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction

Problem = tuple[str, Fraction]
NAMES = ("Ana", "Ben", "Carla", "Noah", "Mia", "Leo")
THINGS = ("apples", "marbles", "books", "stamps", "cherries", "boxes", "coins")
Told = Callable[[int, int, int], tuple[str, Fraction | int]]

INSIDE: dict[str, Told] = {
    "bought and eaten": lambda a, b, c: (
        f"{{A}} has {a + c} {{T}}. {{A}} buys {b} more and loses {c}. How many {{T}} does {{A}} have now?",
        a + b,
    ),
    "given to a holder": lambda a, b, c: (
        f"{{A}} has {a + b} {{T}}. {{B}} has {c} {{T}}. {{A}} gives {{B}} {b} {{T}}. How many {{T}} does {{B}} have?",
        c + b,
    ),
    "received from a holder": lambda a, b, c: (
        f"{{A}} has {a + b} {{T}}. {{B}} has {c} {{T}}. {{B}} receives {b} from {{A}}. How many {{T}} does {{A}} have?",
        a,
    ),
    "twice, the other first": lambda a, b, c: (
        f"{{B}} has {a} {{T}}. {{A}} has twice as many {{T}} as {{B}}. How many {{T}} do they have together?",
        3 * a,
    ),
    "twice, the other later": lambda a, b, c: (
        f"{{A}} has twice as many {{T}} as {{B}}. {{B}} has {a} {{T}}. How many {{T}} do they have together?",
        3 * a,
    ),
    "times as many, without a name": lambda a, b, c: (
        f"{{B}} has {a} {{T}}. {{A}} has {b} times as many. How many {{T}} do they have in all?",
        a + a * b,
    ),
    "more, without a name": lambda a, b, c: (
        f"{{B}} has {a} {{T}}. {{A}} has {b} more. How many {{T}} do they have together?",
        a + a + b,
    ),
    "fewer than, the other later": lambda a, b, c: (
        f"{{A}} has {b} fewer {{T}} than {{B}}. {{B}} has {a + b} {{T}}. How many {{T}} does {{A}} have?",
        a,
    ),
    "more than, told backwards": lambda a, b, c: (
        f"{{A}} has {b} more {{T}} than {{B}}. {{A}} has {a + b} {{T}}. How many {{T}} does {{B}} have?",
        a,
    ),
    "a chain of three": lambda a, b, c: (
        f"{{C}} has {b} more than {{A}}. {{A}} has twice as many as {{B}}. {{B}} has {a} {{T}}."
        " How many {T} does {C} have?",
        2 * a + b,
    ),
    "three together": lambda a, b, c: (
        f"{{A}} has {a} {{T}}. {{B}} has {b} {{T}}. {{C}} has {c} {{T}}. How many {{T}} do they have altogether?",
        a + b + c,
    ),
    "two of three": lambda a, b, c: (
        f"{{A}} has {a} {{T}}. {{B}} has {b} {{T}}. {{C}} has {c} {{T}}."
        " How many {T} do {A} and {B} have together?",
        a + b,
    ),
    "how many more": lambda a, b, c: (
        f"{{A}} has {a + b} {{T}}. {{B}} has {a} {{T}}. How many more {{T}} does {{A}} have than {{B}}?",
        b,
    ),
    "how many fewer": lambda a, b, c: (
        f"{{A}} has {a + b} {{T}}. {{B}} has {a} {{T}}. How many fewer {{T}} does {{B}} have than {{A}}?",
        b,
    ),
    "groups": lambda a, b, c: (f"There are {a} bags with {b} {{T}} each. How many {{T}} are there?", a * b),
    "each holds": lambda a, b, c: (
        f"Each bag holds {a} {{T}}. A farmer fills {b} bags. How many {{T}} are there in all?",
        a * b,
    ),
    "shared": lambda a, b, c: (
        f"{{A}} has {a * b} {{T}}. {{A}} shares them equally among {b} friends. How many {{T}} does each friend get?",
        a,
    ),
    "packed": lambda a, b, c: (
        f"{{A}} has {a * b} {{T}}. {{A}} packs them into bags of {b}. How many bags are there?",
        a,
    ),
    "half lost": lambda a, b, c: (
        f"{{A}} has {2 * a} {{T}}. {{A}} loses half of them. How many {{T}} are left?",
        a,
    ),
    "half given to a holder": lambda a, b, c: (
        f"{{A}} has {2 * a} {{T}}. {{B}} has {b} {{T}}. {{A}} gives half of them to {{B}}."
        " How many {T} does {B} have?",
        a + b,
    ),
    "prices": lambda a, b, c: (
        f"{{A}} has {a * b + c} dollars. {{A}} buys {a} pens at {b} dollars each. How much money is left?",
        c,
    ),
    "two prices": lambda a, b, c: (
        f"{{A}} buys {a} pens at ${b} each and {b} books at ${c} each. How much does {{A}} pay?",
        a * b + b * c,
    ),
    "wages": lambda a, b, c: (
        f"{{A}} earns {a} dollars an hour. {{A}} works {b} hours. How much does {{A}} earn?",
        a * b,
    ),
    "discount": lambda a, b, c: (
        f"A coat costs {a} dollars. It is sold at {b % 99 + 1}% off. What is the price now?",
        Fraction(a * (99 - b % 99), 100),
    ),
    "part of a class": lambda a, b, c: (f"A class has {5 * a} students. 20% are girls. How many girls are there?", a),
    "ages": lambda a, b, c: (f"{{A}} is {a} years old. {{B}} is {b} years older than {{A}}. How old is {{B}}?", a + b),
    "two kinds": lambda a, b, c: (f"{{A}} has {a} cats and {b} dogs. How many animals does {{A}} have?", a + b),
    "lost day by day": lambda a, b, c: (
        f"{{A}} has {a + b * c} {{T}}. {{A}} loses {b} a day. How many {{T}} are left after {c} days?",
        a,
    ),
}
OUTSIDE: dict[str, Told] = {
    "what was given": lambda a, b, c: (
        f"{{A}} has {a + b} {{T}}. {{A}} gives {b} to {{B}}. How many {{T}} did {{A}} give away?",
        b,
    ),
    "what the receiver has": lambda a, b, c: (
        f"{{A}} has {a + b} {{T}}. {{A}} gives {b} to {{B}}. How many {{T}} does {{B}} have?",
        b,
    ),
    "at first": lambda a, b, c: (
        f"{{A}} has {a} {{T}}. {{A}} buys {b} more. How many {{T}} did {{A}} have at first?",
        a,
    ),
    "one kind of two": lambda a, b, c: (
        f"{{A}} has {a + 1} apples and {b} pears. {{A}} eats 1 apple. How many apples does {{A}} have?",
        a,
    ),
    "one colour of two": lambda a, b, c: (
        f"{{A}} has {a} red balls and {b} blue balls. How many red balls does {{A}} have?",
        a,
    ),
    "pens, not dollars": lambda a, b, c: (
        f"{{A}} buys {a} pens at {b} dollars each. How many pens does {{A}} have?",
        a,
    ),
    "boxes, not pens": lambda a, b, c: (f"There are {a} bags with {b} pens each. How many bags are there?", a),
    "bags lost": lambda a, b, c: (
        f"There are {a + c} bags with {b} pens each. {c} bags are lost. How many pens are there?",
        a * b,
    ),
    "hours, not distance": lambda a, b, c: (
        f"A train travels {a} km an hour for {b} hours. How long does it travel?",
        b,
    ),
    "how many days": lambda a, b, c: (
        f"{{A}} reads {a} pages a day. How many days does {{A}} need for {a * b} pages?",
        b,
    ),
    "eaten before sharing": lambda a, b, c: (
        f"{{A}} has {a * b + c} {{T}}. {{A}} eats {c} and shares the rest equally among {b} friends."
        " How many {T} does each get?",
        a,
    ),
    "a part of the rest": lambda a, b, c: (
        f"{{A}} has {6 * a} {{T}}. {{A}} gives half to {{B}} and a third of the rest to {{C}}. How many are left?",
        2 * a,
    ),
    "saved": lambda a, b, c: (f"A coat costs {10 * a} dollars. It is sold at 10% off. How much is saved?", a),
    "the others of a class": lambda a, b, c: (
        f"A class has {5 * a} students. 20% are girls. How many boys are there?",
        4 * a,
    ),
    "denied": lambda a, b, c: (
        f"{{A}} has {a + b} {{T}}. {{A}} does not sell {b} of them. How many {{T}} does {{A}} have?",
        a + b,
    ),
    "all but": lambda a, b, c: (f"{{A}} has {a + b} {{T}}. {{A}} sells all but {a}. How many are left?", a),
    "some": lambda a, b, c: (f"{{A}} had {a + b} {{T}}. {{A}} lost some. {a} are left. How many did {{A}} lose?", b),
    "milk of cows": lambda a, b, c: (
        f"{{A}} has {a} cows. Each cow gives {b} liters of milk. How many liters does {{A}} get?",
        a * b,
    ),
    "broken": lambda a, b, c: (f"{{A}} buys {a + b} eggs. {b} of them are broken. How many are good?", a),
    "change": lambda a, b, c: (
        f"{{A}} buys {a} pens at {b} dollars each. {{A}} pays with {a * b + c} dollars."
        " How much change does {A} get?",
        c,
    ),
    "two rates": lambda a, b, c: (
        f"{{A}} earns {a} dollars an hour. {{A}} works {b} hours a day for {c} days. How much does {{A}} earn?",
        a * b * c,
    ),
    "dearer than a thing": lambda a, b, c: (
        f"A pen costs {a} dollars. A book costs {b} dollars more than a pen. How much does the book cost?",
        a + b,
    ),
    "to be level": lambda a, b, c: (
        f"{{A}} has {a} {{T}}. {{B}} has {a + 2 * b} {{T}}. How many {{T}} should {{B}} give {{A}} so that both have"
        " the same?",
        b,
    ),
    "missing": lambda a, b, c: (
        f"{{A}} has {a} {{T}}. {{A}} wants {a + b} {{T}}. How many more {{T}} does {{A}} need?",
        b,
    ),
    "times a week": lambda a, b, c: (
        f"{{A}} has {a} {{T}}. {{A}} trains {b} times a week. How many {{T}} does {{A}} have?",
        a,
    ),
    "a relative": lambda a, b, c: (
        f"{{A}} has {a} {{T}}. Her brother buys {b} {{T}}. How many {{T}} does {{A}} have?",
        a,
    ),
    "of a number": lambda a, b, c: (f"{a} of {a + b} {{T}} are red. How many {{T}} are there?", a + b),
    "half an hour": lambda a, b, c: (
        f"{{A}} has {2 * a} {{T}}. {{A}} waits half an hour. How many {{T}} does {{A}} have?",
        2 * a,
    ),
    "found day by day": lambda a, b, c: (
        f"{{A}} has {a} {{T}}. {{A}} finds {b} a day. How many {{T}} are left after {c} days?",
        a + b * c,
    ),
    "a price and a purse": lambda a, b, c: (
        f"{{A}} has {a * b + c} dollars. Each pen costs {a} dollars. {{A}} buys {b} pens. How much money is left?",
        c,
    ),
    "bought for money": lambda a, b, c: (
        f"{{A}} has {a + b} dollars. {{A}} buys a book for {a} dollars. How much money is left?",
        b,
    ),
    "fell to": lambda a, b, c: (f"The price was {a + b} dollars. It fell to {a} dollars. What is it now?", a),
    "dealt": lambda a, b, c: (f"{{A}} deals {a} cards to {b} players each. How many cards are dealt?", a * b),
    "taken seats": lambda a, b, c: (f"A bus has {a + b} seats. {b} are taken. How many are free?", a),
    "a receiver who holds": lambda a, b, c: (
        f"{{A}} has {2 * a} {{T}}. {{A}} gives half to {{B}}. {{B}} has {b} {{T}}. How many {{T}} does {{B}} have now?",
        a + b,
    ),
    "eggs in cakes": lambda a, b, c: (
        f"{{A}} has {a * b + c} eggs. {{A}} bakes {a} cakes with {b} eggs each. How many eggs are left?",
        c,
    ),
    "friends who come": lambda a, b, c: (
        f"{{A}} has {a} {{T}}. {b} of her friends come. How many {{T}} does {{A}} have?",
        a,
    ),
    "another's purse": lambda a, b, c: (
        f"{{A}} has {a} dollars. {{B}} buys {b} pens at {c} dollars each. How much money does {{A}} have?",
        a,
    ),
    "a second question": lambda a, b, c: (
        f"{{A}} has {a} {{T}}. How many does {{A}} have? {{A}} buys {b}. How many {{T}} did {{A}} buy?",
        b,
    ),
}


def told(kinds: dict[str, Told], count: int, seed: int) -> Iterator[tuple[str, str, Fraction]]:
    """So many problems, every kind in turn: kind, text and answer."""
    chance = random.Random(seed)
    for at in range(count):
        kind = list(kinds)[at % len(kinds)]
        text, answer = kinds[kind](*(chance.randint(2, 60) for _ in range(3)))
        names = dict(zip("ABC", chance.sample(NAMES, 3), strict=True))
        yield kind, text.format(**names, T=chance.choice(THINGS)), Fraction(answer)
