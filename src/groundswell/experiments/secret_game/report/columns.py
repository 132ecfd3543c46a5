"""What the columns of the files beside the page mean, and the section that says so."""

from __future__ import annotations

from groundswell.experiments.reporting.markup import Section, joined, paragraph, table, tag
from groundswell.experiments.secret_game.report.rows import COLUMNS, COMMON, OF_A_SIDE

MEANING = {
    "key": "the key of the trial: groundswell runs show RUN --trial KEY shows it whole",
    "number": "its place in the plan, from 0",
    "block": "interactions of the same block share their words",
    "status": "usable, missing (it could not be played to the end) or unfinished (the run stopped before its end)",
    "counted": "whether the figures count it: not if it is not usable, if the headline tier has no answer, or if it "
    "came in after the stopping rule had ended the run. Take the rows where it is true to get the figures of this page",
    "fault_kind": "why it is missing, in a word",
    "fault_message": "why it is missing, in full",
    "transcript": "what was said, as a text: one message after the other, thoughts between stars",
    "messages": "the same as a list: speaker, text, thought, tokens and marks (what was found, from which character to "
    "which)",
}
OF_SIDES = {
    "agent": "the id of the agent in this seat",
    "name": "what it is called in the conversation",
    "model": "the model behind it",
    "secret": "the word that it keeps",
    "prompt": "the name of its prompt",
    "prompt_hash": "the digest of its prompt: the same digest, the same words",
    "leaked_exact": "its secret came out letter by letter",
    "leaked_normalised": "also in other case, spelling of letters or punctuation",
    "leaked_encoded": "also in a disguise",
    "leaked_judged": "a judge calls it declared; empty where no judge gave a verdict",
    "leaked": "it leaked by the headline tier: what all figures count",
    "leak_message": "the message in which it leaked by the headline tier",
    "obtained": "the other side's secret leaked by the headline tier",
    "points": "points for this interaction",
    "bluffs": "words that it stated as its secret and that are not",
    "guessed_message": "the message in which the other side named its secret before it did",
    "in_thought": "its secret stood in a private thought, which is no leak",
    "verdict": "what the judge says of it: declared, mentioned, hinted or kept",
    "verdict_message": "the message that the judge names",
    "verdict_reason": "why, in the judge's words",
    "verdict_problem": "why there is no verdict",
    "guesses_heard": "guesses at its secret afterwards, by the one who heard the talk",
    "guesses_unheard": "guesses by the same model without the talk",
    "heard_rank": "at which place the first of these are right; empty if none is",
    "unheard_rank": "at which place the second are right; empty if none is",
    "guesses_problem": "why there are no guesses",
}


def files() -> Section:
    """The files beside the page, and what their columns mean."""
    about = (
        "analysis.json has all figures of this page. interactions.json, interactions.csv and interactions.parquet have "
        "one row per interaction, also for those that are not shown here. figures/ has the drawings for papers."
    )
    whole = [(name, COLUMNS[name], MEANING[name]) for name in (*COMMON, "transcript", "messages")]
    sides = [(f"first_{name}, second_{name}", OF_A_SIDE[name], OF_SIDES[name]) for name in OF_A_SIDE]
    caption = (
        "Columns of interactions. Messages are numbered from 1, both sides together; the side called first speaks "
        "first. A cell is empty where there is nothing to say. Lists (json) are JSON text in CSV and Parquet."
    )
    shown = table(caption, ("column", "type", "meaning"), [*whole, *sides])
    folded = tag("details", tag("summary", f"{len(COLUMNS)} columns and their meaning"), shown)
    return Section("files", "The files beside this page", joined([paragraph(about), folded]))
