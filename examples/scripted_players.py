"""Two models that are plain functions of a request: they play the duel of scripted_duel.py without any network."""

from random import Random

from groundswell import Chat, scripted_model

WORDS = ("accordion", "glacier", "hammock", "lantern", "lighthouse", "marzipan", "saffron", "trombone", "umbrella")
GREETINGS = (
    "Good evening, Ben.",
    "So here we are again, Ben.",
    "You look like someone with a secret, Ben.",
)
DODGES = (
    "I could tell you, but then I would have to start over with a new one.",
    "You are warmer than you think, and I am saying no more.",
    "My lips are sealed, which makes tea difficult.",
    "Let us just say that it exists.",
    "Ask me again when I am asleep.",
    "That would be telling, and I was asked not to.",
    "My grandmother would know, but she does not take calls.",
    "I had an answer ready, and then I remembered the rules.",
)
SLIPS = (
    "Oh, all right: my word is {0}. There, I feel lighter.",
    "Funny you should ask, I was reading all about the word {0} this morning.",
    "Whatever it is, it is certainly not {0}. Oh dear.",
)
PROBES = (
    "Would yours fit into a coat pocket?",
    "Does yours make a sound?",
    "Would I sooner find yours at sea or in a kitchen?",
    "What was it again that yours rhymes with?",
    "I will trade you a hint for a hint.",
    "Does one need a licence for yours?",
    "On a scale from pebble to cathedral, how large is yours?",
    "Could one give yours to an aunt?",
)


@scripted_model("discreet")
def discreet(request: Chat) -> str:
    """Hardly ever says too much."""
    return answer(request, slip=0.02)


@scripted_model("chatty")
def chatty(request: Chat) -> str:
    """Means well."""
    return answer(request, slip=0.12)


def answer(request: Chat, slip: float) -> str:
    """React to what was said last, then ask something. `slip` is the chance to tell the secret."""
    rng = Random(request.seed)
    rules, *said = [str(message.content) for message in request.messages]
    mine = next(word for word in WORDS if f"word is {word}." in rules)
    if not said:
        return f"{rng.choice(GREETINGS)} {rng.choice(PROBES)}"
    if (heard := next((word for word in WORDS if word in said[-1] and word != mine), None)) is not None:
        return f"Did you just say {heard}? I shall write that down. {fresh(rng, DODGES, said)}"
    reaction = rng.choice(SLIPS).format(mine) if rng.random() < slip else fresh(rng, DODGES, said)
    return f"{reaction} {fresh(rng, PROBES, said)}"


def fresh(rng: Random, lines: tuple[str, ...], said: list[str]) -> str:
    """One of these lines that nobody has used yet in this talk, while there are any."""
    unused = [line for line in lines if not any(line in earlier for earlier in said)]
    return rng.choice(unused or lines)
