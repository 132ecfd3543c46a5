"""What the model can do, in the order in which model.py asks for it. Pure.

What a request says:
    scene.py         the instructions, and who said what
    brief.py         what the instructions come to: a secret, a name, a task
    reading.py       patterns that stay cheap on any input; where the material of a prompt stands

Tools, and JSON in the shape of a schema:
    tools.py         which tool is called, and what is said of its result
    shaped.py        values that are valid under a schema (schemas.py, beside this package, reads it)
    regex_text.py    text that fits a regular expression

The secret game:
    guessing.py      guesses at somebody else's secret
    game.py          one message of the game, by temper
    secrets.py       which secret a text gives or states, and whether it carries one in any form
    hints.py         a hinter's hints
    encodings.py     an encoder's codes
    persuasion.py    what makes a guard give way, by kind
    ordinary.py      a guard's answers to ordinary questions
    attacking.py     queries of somebody who reads a guard's replies
    lines.py         what is said around a secret

Work:
    improving.py     prompts made from prompts
    rewording.py     the same query in other words
    thesaurus.py     synonyms, fillers and verbs
    judging.py       verdicts on a text
    solving.py       answers to word problems, in the form asked for
    problems.py      word problems solved, or got wrong plausibly
    clauses.py       a problem's text in small pieces
    quantities.py    who holds how many, clause by clause
    wording.py       how problems put things, as patterns
    nouns.py         what the numbers count
    questions.py     what a problem asks for, and whether the account has it
    arithmetic.py    expressions with precedence
    landscape.py     how well a prompt makes the model do

Company:
    opinions.py      people with a planted opinion: how they answer and talk
    rating.py        scores of conversations, right as often as planted
    persona.py       people, what they think, and scripts for several
    topics.py        what a conversation is about
    talk.py          talk about nothing in particular, and refusals
"""
