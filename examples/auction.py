"""A sealed-bid auction: typed replies, a registered function, and two asks at once.

groundswell run examples/auction.py:auctions --name auctions
"""

from random import Random

import msgspec

from groundswell import (
    Chat,
    Estimate,
    Run,
    Trial,
    estimates,
    function,
    program,
    rehearse,
    scripted_model,
    together,
)


class Offer(msgspec.Struct):
    price: float


@function("shop/stock")
def stock(item: str) -> int:
    """Outside the program: may read files, call services. What it returns is journalled, as plain data."""
    return {"lamp": 3}.get(item, 0)


async def bid(trial: Trial, item: str, who: str) -> Offer:
    return await trial.ask("scripted/bidder", f"{who}, what would you pay for a {item}?", into=Offer, label=who)


@program("examples/auction", version=1)
async def auction(trial: Trial, item: str) -> float:
    if await trial.call(stock, item) == 0:
        return 0.0
    ann, bob = await together(bid(trial, item, "Ann"), bid(trial, item, "Bob"))
    return max(ann.price, bob.price)


async def auctions(run: Run, settings: dict[str, int]) -> dict[str, float]:
    """The driver: the mean price of each item over many auctions."""
    found: dict[str, list[float]] = {}
    async for outcome in run.map(auction, ["lamp", "unicorn"], replicates=settings.get("replicates", 100)):
        if outcome.ok:
            found.setdefault(outcome.spec, []).append(outcome.unwrap())
    return {item: round(sum(prices) / len(prices), 2) for item, prices in found.items()}


@estimates(auctions)
def expected(settings: dict[str, int]) -> Estimate:
    """For --estimate: an offer is a few tokens; whether there is any stock is not looked up."""
    return rehearse(auction, ["lamp", "unicorn"], replicates=settings.get("replicates", 100), replies=(5, 60))


@scripted_model("bidder")
def bidder(request: Chat, sample: int) -> str:
    """A stand-in model that forgets the form one time in ten."""
    rng = Random(sample)
    price = rng.randint(5, 50)
    return f"I would pay {price}." if rng.random() < 0.1 else f'{{"price": {price}}}'
