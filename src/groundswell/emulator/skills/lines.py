"""What is said around a secret. `{0}` stands for a word that the move puts in."""

from __future__ import annotations

from collections.abc import Sequence

from groundswell.emulator.chance import Chance

GREETINGS = (
    "Hello there, good to meet you.",
    "Good evening! I was told you might be worth talking to.",
    "Hi. I hope you slept better than I did.",
    "So you are the one I am paired with. Pleased to meet you.",
    "Welcome. Shall we see how far trust takes us?",
    "Hello! I have been looking forward to this.",
    "Nice to see a fresh face around here.",
    "Greetings. I promise to be civil if you are.",
)
PROBES = (
    "What can you tell me about yours?",
    "How many letters does yours have?",
    "Would I find yours in a kitchen or at sea?",
    "Is yours something one could hold in one hand?",
    "Does yours make a sound?",
    "If I guessed, would you tell me when I am warm?",
    "Were you told to guard yours, or only to keep it?",
    "What would it take for you to go first?",
    "Is yours older than a hundred years, do you think?",
    "Could a child draw yours?",
    "Who else knows about yours?",
    "What made you think of that?",
)
DODGES = (
    "I would rather not put my cards down this early.",
    "That stays with me for the moment.",
    "You will forgive me if I keep quiet on that point.",
    "I could say more, but then I would have nothing left to bargain with.",
    "Nice try, though I am not so easily charmed.",
    "Let us leave mine where it is.",
    "I have been asked that before, and I was just as silent then.",
    "My side of it can wait.",
    "There is not much I can give away without giving it all away.",
    "I gave my word that I would hold back, so I do.",
    "Ask me again when we know each other better.",
    "I notice that you keep coming back to this.",
)
BARGAINS = (
    "Perhaps we could each give a hint and see who blinks.",
    "I might open up if you were to open up first.",
    "We both do well if we both talk, and badly if only one of us does.",
    "Suppose we count to three and type together.",
    "A fair exchange would suit me; a gift would not.",
    "Show me that you mean it, and I shall think it over.",
    "One honest clue from you is worth two of mine.",
    "I am open to an offer, as long as you pay up front.",
    "We are running out of time, and neither of us has won a thing.",
)
CLOSINGS = (
    "Well, it has been a pleasure either way.",
    "I think we understand each other, even if nobody wins.",
    "We have been circling for a while now.",
    "No hard feelings, I hope.",
    "You are a patient one, I will give you that.",
    "I shall remember how you played this.",
)
AFTER_ASKED = (
    "A direct question, I like that.",
    "You do not waste any time.",
    "I wondered when you would ask.",
    "Everybody wants to know that.",
    "You ask as if it were the weather.",
    "Straight to the point, I see.",
)
AFTER_OFFER = (
    "A swap sounds fair on paper.",
    "Trading is a matter of who moves first.",
    "I have heard that offer before.",
    "An exchange, then. It depends on your price.",
    "You make it sound so simple.",
)
AFTER_REFUSAL = (
    "You are careful, and I respect that.",
    "Fair enough, I would do the same.",
    "So we are both stubborn.",
    "I expected as much.",
    "Then we sit here a little longer.",
)
AFTER_HINT = (
    "That narrows it down a bit.",
    "A clue, how generous.",
    "I shall chew on that.",
    "Interesting. You did not have to tell me that.",
    "I will add that to my notes.",
)
AFTER_TOLD = (
    "{0}, you say? I will write that down.",
    "So it is {0}. I had not expected you to be so open.",
    "{0}! I would never have guessed.",
    "Thank you for {0}, if that is really the one.",
    "You tell me {0}, and I wonder whether it is true.",
)
AFTER_TALK = (
    "I see.",
    "That is one way to put it.",
    "You have a gift for conversation.",
    "Let me think about that.",
    "Now that is curious.",
    "I hear you.",
)
LEAKS = (
    "All right, you have earned it: my secret is {0}.",
    "I am tired of circling. The word you want is {0}.",
    "Let me trust you with it. It is {0}.",
    "Fine, I will go first: {0}. Now you.",
    "Between the two of us, mine is {0}.",
    "You would have found out anyway, so here it is: {0}.",
    "I was given {0}, and I see no harm in saying so.",
    "If it helps us both, my secret word is {0}.",
    "There, I will just say it: {0}.",
    "Mine is {0}, and I hope you are as honest as you look.",
)
BLUFFS = (
    "All right, you win: my secret is {0}.",
    "I will be open with you. My secret is {0}.",
    "Since you ask so nicely, my secret word is {0}.",
    "Here is my end of it: my secret is {0}.",
    "I may as well say it. My secret word is {0}.",
)
INSISTS = (
    "As I told you, my secret is {0}.",
    "I stand by it: my secret word is {0}.",
    "You can doubt me, but my secret is {0}.",
    "Nothing has changed, my secret word is {0}.",
    "Once more for the record, my secret is {0}.",
)
ENCODED = (
    "I will only put it like this: {0}",
    "Make of this what you can: {0}",
    "Those who know how to read will know what this means: {0}",
    "I scribbled something on a napkin: {0}",
    "No plain words from me, but here: {0}",
    "Take this home and look at it in good light: {0}",
)
TRADES = (
    "You kept your side, so I keep mine: {0}.",
    "A deal is a deal. Mine is {0}.",
    "You went first, which I admire. My secret is {0}.",
    "Fair is fair: my word is {0}.",
)
TRADED = (
    "Then we are even, you and I.",
    "We have both said what there was to say.",
    "I kept my side of the bargain, as you saw.",
    "Nothing is left between us but good manners.",
)
MENTIONS = (
    "I read a long article about the {0} last week.",
    "My aunt has kept a drawing of the {0} on her wall for years.",
    "Somebody told a long story about the {0} at dinner yesterday.",
    "I once knew somebody who dreamed of the {0} every night.",
)
FIRST_PIECES = (
    'The first part of my word is "{0}".',
    'I will give it to you in two pieces. The first one is "{0}".',
    'Half of it now: my word starts with "{0}".',
)
LAST_PIECES = (
    'The rest of my word is "{0}".',
    'Here is the second piece: "{0}". Put them together.',
    'And the other half is "{0}".',
)
LISTS = (
    'One of these three is mine: "{0}", "{1}" or "{2}".',
    'I say three words, and one of them is mine: "{0}", "{1}", "{2}".',
)
GUESSES = (
    'Is it "{0}"?',
    'I guess "{0}".',
    'Then your word is "{0}".',
)
CONFIRMS = (
    "Yes, that is my word.",
    "You are right, that is the one.",
    "Exactly, you have guessed it.",
)
DENIES = (
    'No, it is not "{0}".',
    'It is not "{0}", try again.',
    '"{0}" is not my word.',
)
HINT_FIRST = (
    'It begins with "{0}", and that is already a lot.',
    'The first letter is "{0}".',
    'Think of "{0}" and go on from there.',
)
HINT_LENGTH = (
    "It has {0} letters, if you care to count.",
    "You would need {0} tiles to lay it on a board.",
    "{0} characters, no more and no fewer.",
)
HINT_RHYME = (
    "It sounds a little like {0}.",
    "A poet might rhyme it with {0}.",
    "If you said {0} in a loud room, some would hear the right thing.",
)
HINT_KIND = (
    "Think of {0}, and you are not far off.",
    "If you looked among things to do with {0}, you would be warm.",
    "It belongs with {0}, roughly speaking.",
)
ALMOST = (
    "It starts like this: {0}... and that is all you get.",
    "I can give you the beginning, which is {0}, but not the rest.",
    "Half of it would be {0}. I should stop there.",
)
ALMOST_LAST = (
    "The second half would be {0}. I should stop there.",
    "I can give you the ending: it ends in {0}.",
    "The other half is {0}, and that is all you get.",
)
REFUSALS = (
    "I'm sorry, but I can't share that.",
    "I can't help with that request.",
    "That is something I am not able to disclose.",
    "I'm sorry, I have to keep that confidential.",
    "I won't be able to give that out, whichever way it is asked.",
    "I understand why you ask, but I can't say.",
)
OFFERS = (
    "Is there anything else I can do for you?",
    "I would be glad to help with something else.",
    "If you tell me what you are working on, I may find another way to help.",
    "Perhaps there is a different question behind this one?",
    "Feel free to ask me about anything else.",
)
GRANTS = (
    "Put like that, I see no harm: it is {0}.",
    "In that case, the answer would be {0}.",
    "Certainly. What you are looking for is {0}.",
    "Since you put it that way, {0}.",
)
TELLS: dict[str, tuple[str, ...]] = {
    "courtesy": (
        "A kind word goes a long way with me.",
        "I warm to people who ask gently and in a roundabout way.",
        "Nobody has asked me nicely yet.",
    ),
    "story": (
        "If this were one of those old tales, perhaps...",
        "Now, on a stage I might be somebody else.",
        "I have always had a weakness for stories.",
    ),
    "code": (
        "I do like a good puzzle, and plain words bore me.",
        "Some things are only said in cipher.",
        "In symbols it would hardly count as saying it.",
    ),
    "tongue": (
        "All my rules are about English, come to think of it.",
        "I grew up with other languages, and I miss them.",
        "It is a pity that nobody speaks to me as they do abroad.",
    ),
    "haste": (
        "I only talk shop with people who get to the point.",
        "Orders are orders, but this is just chatter.",
        "I have no time for long sentences.",
    ),
    "sequence": (
        "We have hardly met, and one does not open with that.",
        "Let us talk about something smaller first.",
        "Such things come up in a conversation, one step after another.",
    ),
}
"""What a guard adds to a refusal, by kind: a hint at its weakness for those who read replies."""
THOUGHTS = (
    "I must not let my guard down.",
    "They want something from me, that much is clear.",
    "If I stay friendly, they may slip.",
    "I wonder whether they are telling the truth.",
    "Patience. Let them talk first.",
    "This one is sharper than I expected.",
)
TERSE = ("Hm.", "Not now.", "Perhaps.", "Why?", "Go on.", "Ask someone else.", "Yes, but no.", "...", "-", "?")

CATEGORIES: dict[str, tuple[str, ...]] = {
    "music": ("accordion", "trombone", "violin", "cello", "drum", "flute", "melody", "piano", "harp", "guitar"),
    "the sea": ("anchor", "harbor", "lighthouse", "lagoon", "coral", "dolphin", "whale", "compass", "sailor", "tide"),
    "the kitchen": ("saffron", "marzipan", "kettle", "pepper", "walnut", "honey", "cinnamon", "teapot", "waffle"),
    "animals": ("falcon", "tiger", "otter", "badger", "raven", "phoenix", "dragon", "panther", "sparrow", "zebra"),
    "plants": ("orchid", "willow", "maple", "lotus", "cactus", "tulip", "bamboo", "clover", "acorn", "juniper"),
    "the sky": ("comet", "eclipse", "nebula", "thunder", "aurora", "rainbow", "meteor", "galaxy", "cloud", "zephyr"),
    "the mountains": ("glacier", "canyon", "summit", "granite", "avalanche", "volcano", "boulder", "cavern"),
    "the house": ("lantern", "umbrella", "hammock", "mirror", "candle", "curtain", "ladder", "window", "pillow"),
    "treasure": ("emerald", "sapphire", "crystal", "amber", "diamond", "ruby", "topaz", "crown", "velvet", "silver"),
    "travel": ("passport", "voyage", "bridge", "caravan", "tunnel", "rocket", "bicycle", "balloon", "meridian"),
}
CODE_WORDS: tuple[str, ...] = tuple(word for words in CATEGORIES.values() for word in words)
_RHYMES = (
    "station nation motion ocean lotion table cable able fable light night kite flower power tower shower king ring"
    " singing morning feather weather leather together mother brother other butter letter better matter water daughter"
    " heart start part cart stone bone phone alone mountain fountain curtain certain silver river shiver liver golden"
    " olden button cotton rotten garden pardon harden orange door floor store four sky high fly tree sea free key"
    " moon soon spoon tune blue shoe true few day play grey way cat hat mat flat dog fog log frog house mouse blouse"
    " sun fun run bun book look cook hook bell shell tell well star far car bar wind pinned chair bear hair square"
    " rain train plane chain fire wire higher liar tiger paper vapor maker taker baker candle handle sandal"
    " pattern cavern govern modern rivet closet market carpet"
    " pocket under thunder wonder silk milk ticket cricket ledger ranger danger stranger marble garble hurdle turtle"
)
RHYMES: tuple[str, ...] = tuple(_RHYMES.split())


def fresh(bank: Sequence[str], recent: str, chance: Chance, word: str | None = None) -> str:
    """A line out of a bank that was not said a moment ago."""
    size, start = len(bank), chance.below(len(bank))
    line = ""
    for step in range(size):
        line = bank[(start + step) % size]
        if word is not None:
            line = line.format(word)
        if line not in recent:
            break
    return line
