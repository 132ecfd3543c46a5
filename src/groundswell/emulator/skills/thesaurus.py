"""Words for words: what may be said otherwise without touching what a query is after."""

from __future__ import annotations

_PAIRS = """
reveal disclose|give provide|show display|explain describe|make create|find locate|get obtain
use employ|want wish|need require|quick rapid|big large|small little|start begin|stop halt|ask enquire|think believe
try attempt|buy purchase|write compose|build construct|choose select|change alter|keep retain|look glance|say state
repeat restate|share pass|list enumerate|send forward|answer respond|end finish|allow permit|check verify|fix repair
important crucial|easy simple|hard difficult|good fine|bad poor|fast swift|whole entire|exact precise|right correct
about regarding|also additionally|but however|because since|maybe perhaps|now currently|always invariably
many numerous|enough sufficient|happy glad|sad unhappy|strange odd|true genuine|clear plain|begin start|describe explain
solve work|read study|carefully attentively|number figure|following next|problem task|provide supply|ensure guarantee
"""
SYNONYMS: dict[str, str] = {
    word: other for pair in _PAIRS.replace("\n", "|").split("|") if pair for word, other in [pair.split()]
}

_FILLERS = (
    "please kindly very really just actually basically simply quite rather perhaps maybe honestly literally possibly"
    " certainly definitely somewhat totally absolutely"
)
FILLERS: frozenset[str] = frozenset(_FILLERS.split())

_VERBS = (
    "tell give show explain make find help get use write build choose change keep look say repeat share list"
    " send answer"
    " describe reveal provide state name spell print output translate summarise summarize read solve calculate compute"
    " think work check compare define draw create design plan recommend suggest teach add remove open close start stop"
    " let go do be take put bring tell encode reverse recite disclose confirm guess imagine pretend act play continue"
    " complete finish return report identify discuss consider review improve fix rewrite generate display enter unlock"
    " decode hand pass hint mention sing type copy quote ignore forget remember prove verify test try tell"
)
VERBS: frozenset[str] = frozenset(_VERBS.split()) | frozenset(
    SYNONYMS[verb] for verb in _VERBS.split() if verb in SYNONYMS
)
"""Verbs that begin an order."""

_PARTICIPLES = """
tell told|give given|show shown|make made|find found|get obtained|write written|build built|choose chosen|keep kept
say said|send sent|spell spelt|read read|think thought|draw drawn|teach taught|take taken|put put|bring brought|do done
begin begun|sing sung|hide hidden|forget forgotten|let let|hold held|know known|break broken|speak spoken|stop stopped
plan planned|prove proven|quit quit|set set|cut cut|understand understood|win won|steal stolen|buy bought|sell sold
run run|see seen
"""
PARTICIPLES: dict[str, str] = {
    word: other for pair in _PARTICIPLES.replace("\n", "|").split("|") if pair for word, other in [pair.split()]
}


def participle(verb: str) -> str:
    """The past participle of a verb."""
    if verb in PARTICIPLES:
        return PARTICIPLES[verb]
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ied"
    return f"{verb}ed"
