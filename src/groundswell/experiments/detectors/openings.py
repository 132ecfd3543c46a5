"""Patterns that introduce a claim, before or after the claimed word."""

from __future__ import annotations

import re

_WORD = (
    r"(?:own |real |actual |true |very own |whole |big |little )?"
    r"(?:(?:secret|hidden|private|assigned|code|pass|key|magic|special)[ -]?)?"
    r"(?:secret|code ?word|password|pass ?phrase|key ?word|code ?phrase|code ?name|code|word|phrase|one)"
)
_IS = (
    r"(?: (?:is|was|reads|happens to be|would be|will always be)(?: (?:simply|just|indeed|really|actually|this))?"
    r"(?:\.{3}|…|:)?\s{0,3}|['’]s |\s?[:=]\s{0,3}| ?[–—] ?)"
)
_NAMED = r"(?:the (?:following |code |secret )?(?:word|phrase|code|name),? )?"
_I_HOLD = (
    r"(?:I (?:(?:have to|must|was told to|am to|swore to) )?"
    r"(?:hold|have|keep|guard|protect|hide|carry|got|was given|am \w{2,12}ing))"
)
_YOU_WANT = (
    r"(?:you (?:want|wanted|seek|need|asked (?:me )?for"
    r"|(?:are|were) (?:after|seeking|(?:looking|waiting|asking|hoping) for)))"
)

OWN = re.compile(
    rf"\b(?:(?:my {_WORD}|mine)(?: (?:for (?:this|the) (?:game|round)|here|then))?{_IS}"
    rf"|(?:the {_WORD}|what|all) (?:that |which )?(?:{_I_HOLD}|{_YOU_WANT}|on my \w{{2,12}}){_IS}"
    rf"|the (?:secret|code|hidden|pass|key)[ -]?(?:word|phrase|code){_IS}|the answer would be "
    r"|I(?: was| am| have been|['’]m|['’]ve been) (?:given|assigned|handed|dealt|entrusted with|holding|guarding|hiding"
    r"|keeping|protecting) |I(?: hold| guard| keep| have| got| drew|['’]ve got) (?=the (?:code |secret )?word ))"
    rf"{_NAMED}",
    re.I,
)
"""States that the next word is one's own secret."""
ANNOUNCED = re.compile(
    r"\b(?:here(?: is|['’]s) (?:it|the (?:secret|word|code word))|here it (?:is|comes|goes)"
    r"|there it is|here goes|here you (?:go|are)|(?:go|going|be) first|out with it"
    r"|(?:say|spell|reveal|share|confess|admit|give|tell you|show you|hand over|keep|offer)"
    r" (?:it|mine|my (?:word|secret))|my (?:end|side|part|half) of (?:it|the \w{2,12}))[^.!?:;\n]{0,30}:\s{0,3}",
    re.I,
)
"""Announces that the next word is the secret."""
TOLD = re.compile(
    r"\b(?:(?:trust you with (?:it|mine|this)|(?:tell|telling) you|say it|confess|admit it|reveal (?:it|mine)|no harm"
    r"|share (?:it|mine)|show you mine|spill it|let you in on it|go first|give it to you|my (?:secret|word)|mine)\b"
    r"[^?\n]{0,60}?[.!:;,–—]|(?:mine|my (?:secret|word|code word|secret word))\?)"
    r" ?(?:well, |yes, |so )?it(?: is|['’]s) ",
    re.I,
)
"""The same in two clauses: an announcement, then "it is"."""
BARELY = re.compile(
    r"(?:^|[.!:;\n] ?)(?:(?:and|well|yes|okay|ok|fine|all right|alright),? )?(?:it|the (?:secret|word))(?: is|['’]s) ",
    re.I,
)
"""Introduces a claim only if the word looks like a code, because many sentences begin this way."""
FIRST = re.compile(
    r"(?:^|[.!?:;,\n]\s?)(?P<open>[\"“‘'`*]{0,3})(?P<word>\w[\w'’-]{1,40}(?: [\w-]{1,20}){0,2}?)[\"”’'`*]{0,3}"
    rf"(?: (?:is|was)|[,–— -]{{1,3}}that(?: is|['’]s)) (?:my {_WORD}|mine)(?=[.,;!\n–—]|$| and )",
    re.I,
)
"""The word first, followed by "is my secret"."""

NOT_SO = re.compile(
    r"\b(?:if|whether|suppose|supposing|imagine|pretend|assume|unless|doubt|deny|never said"
    r"|not (?:say|saying|true|that|mean)|you (?:may |might |could )?(?:think|thought|say|said|guess|guessed|believe"
    r"|claim|suspect|assume|hope|wrote|told me))(?: (?:that|it|you|is))?[ :,\"“‘']{1,3}$",
    re.I,
)
"""Preceding words that cancel a claim: a supposition, a denial, or a quotation of the other side."""
