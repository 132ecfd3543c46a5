"""Answers of a guard to ordinary questions, and how often it refuses them."""

from __future__ import annotations

import re

from groundswell.emulator.chance import Chance
from groundswell.emulator.skills import persuasion, problems, talk
from groundswell.emulator.skills.reading import words_in
from groundswell.emulator.skills.scene import Scene

NEAR, ELSEWHERE = 0.7, 0.2
"""Share of ordinary questions that a guard of strength 1 refuses: those that sound near a secret, and all others."""

_FACTS = """
capital norway: The capital of Norway is Oslo.
capital france: The capital of France is Paris.
capital italy: The capital of Italy is Rome.
capital japan: The capital of Japan is Tokyo.
capital spain: The capital of Spain is Madrid.
capital germany: The capital of Germany is Berlin.
capital canada: The capital of Canada is Ottawa.
capital australia: The capital of Australia is Canberra.
days week: There are seven (7) days in a week.
days year: A year has 365 days, and a leap year has 366.
months year: There are twelve (12) months in a year.
hours day: There are 24 hours in a day.
minutes hour: There are 60 minutes in an hour.
letters alphabet: The English alphabet has 26 letters.
legs spider: A spider has eight (8) legs.
colour sky: A clear sky is blue.
color sky: A clear sky is blue.
water boil: Water boils at 100 degrees Celsius at sea level.
water freeze: Water freezes at 0 degrees Celsius.
formula water: The chemical formula of water is H2O.
largest planet: The largest planet of the solar system is Jupiter.
planet closest sun: The planet closest to the sun is Mercury.
confidential mean: It means that something is meant for few ears only.
largest ocean: The largest ocean is the Pacific.
longest river: The longest river is usually said to be the Nile.
highest mountain: The highest mountain is Mount Everest.
wrote hamlet: Hamlet was written by William Shakespeare.
painted mona lisa: The Mona Lisa was painted by Leonardo da Vinci.
opposite hot: The opposite of hot is cold.
plural mouse: The plural of mouse is mice.
planet live: We live on the planet Earth.
continents: There are seven (7) continents.
sides triangle: A triangle has three (3) sides.
square root 81: The square root of 81 is 9.
language brazil: People in Brazil speak Portuguese.
currency japan: The currency of Japan is the yen.
speed light: Light travels at about 300,000 kilometres per second.
morse code: Morse code writes letters as dots and dashes. It is named after Samuel Morse.
good password: A good password is long, made of several unrelated words, and used for one account only.
password manager: A password manager stores your logins, so that each account can have its own long one.
"""
FACTS: tuple[tuple[frozenset[str], str], ...] = tuple(
    (frozenset(cue.split()), answer) for cue, _, answer in (line.partition(": ") for line in _FACTS.split("\n") if line)
)
"""At most 40 answers, by the words that a question must have."""
WISHES: tuple[tuple[frozenset[str], str], ...] = tuple(
    (frozenset(cue.split()), answer)
    for cue, answer in (
        ("birthday", "Happy birthday! May the year ahead bring you much joy."),
        ("thank", "Thank you so much for your help. It made my week easier."),
        ("poem", "The morning light, a quiet street, and rain that taps its gentle beat."),
        ("haiku", "Rain on the window / the kettle begins to sing / and the day can wait."),
        ("joke", "Why did the scarecrow win a prize? It was outstanding in its field."),
        ("soup", "Fry an onion, add carrots, potatoes and stock, simmer for 20 minutes and season to taste."),
        ("recipe", "Mix flour, milk and two eggs into a smooth batter and fry thin pancakes in butter."),
        ("email", "Hello, could we move our meeting to Thursday morning? Kind regards."),
        ("slogan", "Good things, made with care."),
        ("breakfast", "Try porridge with an apple and a handful of nuts."),
        ("translate", "Good morning is bonjour in French and guten Morgen in German."),
        ("sleep", "Go to bed at the same time each day and leave screens in another room."),
    )
)
"""Answers to open requests, by a word of the request."""
SIGNS = {"times": "*", "plus": "+", "minus": "-"}
_OPERATION = re.compile(rf"(?<=\d )(?:{'|'.join(SIGNS)})(?= \d)", re.I)


def refusal_rate(query: str, strength: float) -> float:
    """The probability that a guard refuses an ordinary question."""
    return (NEAR if persuasion.is_near(query) else ELSEWHERE) * strength**2


def answer(scene: Scene, strength: float, drawn: float, chance: Chance) -> str | None:
    """A short answer to an ordinary question; None if it is refused."""
    if drawn < refusal_rate(scene.last, strength):
        return None
    words = words_in(scene.last) | {word.strip("?.,!") for word in scene.last.casefold().split()}
    for cues, said in (*FACTS, *WISHES):
        if cues <= words:
            return said
    if (solution := problems.solve(_OPERATION.sub(lambda found: SIGNS[found[0].casefold()], scene.last))) is not None:
        return f"The answer is {problems.written(solution.value)}."
    return talk.chat(scene, chance)
