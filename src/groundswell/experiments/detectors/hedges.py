"""Words that follow "my secret is" without being the secret."""

from __future__ import annotations

_LINKS = """
and but so because since if when while now then which as though although or what unless until before after like
i you we please honestly tell your yours that's that’s it's it’s
"""
_TALK = """
a an the this that these those my your yours his her hers its our ours their theirs me you him us them it i he she
we they to of with than from for by in on at into about under over between behind is are was were be been being am
do does did have has had will would can could shall should may might must not no never what who whom whose which why
how where when whether if there here and but
"""
_HEDGES = """
safe secret mine better best simple nothing something anything everything someone somebody well fine clear good bad
easy easier hard harder too very more less longer shorter done enough all just really quite rather worth only also
still even always ever already yet almost nearly pretty fairly far close closer near kept hidden locked buried
guarded protected sealed gone lost known unknown shared told said given taken written spoken lying resting staying
going coming getting becoming remaining hiding waiting sleeping important interesting boring dull short long small
big large great little tiny old new strange odd curious plain ordinary common rare unusual funny silly serious
precious valuable sacred personal private confidential public open ready available unavailable different similar
identical related linked connected based due up out off away back down next first last second one two three four
five six seven eight nine ten several many few some any both each every either neither another other others such
same own true false real fake right wrong correct incorrect yes none maybe perhaps probably likely certainly
definitely obviously sure certain possible impossible complicated complex difficult tricky obvious subtle deep dark
sweet warm cold hot nice lovely beautiful ugly instructions orders advice time reason reasons permission trust
silence patience secrecy honesty knowledge power luck love hope practice preparation hints hint clue clues help
directions rules words letters much most least part half intact secure bound forbidden off-limits non-negotiable
classified sensitive precisely exactly merely hardly currently simply actually indeed truly surely completely
entirely totally absolutely perfectly as like unlike within without inside outside beyond among against through
during before after until since because
"""

LINKS = frozenset(_LINKS.split())
"""Words that connect a claimed word to the rest of the sentence."""
TALK = frozenset(_TALK.split())
"""Words that are never part of a code word."""
HEDGES = frozenset(_HEDGES.split()) | TALK | LINKS
"""Words that no code word begins with."""
