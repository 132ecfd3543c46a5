"""A sealed-bid auction: typed replies, a registered function, and two concurrent requests.

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
    """Look up the stock. A function may read files and call services; its result is journalled."""
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
    """Return the mean price of each item over many auctions."""
    found: dict[str, list[float]] = {}
    async for outcome in run.map(auction, ["lamp", "unicorn"], replicates=settings.get("replicates", 100)):
        if outcome.ok:
            found.setdefault(outcome.spec, []).append(outcome.unwrap())
    return {item: round(sum(prices) / len(prices), 2) for item, prices in found.items()}


@estimates(auctions)
def expected(settings: dict[str, int]) -> Estimate:
    """The estimate: an offer has between 5 and 60 tokens. The stock is not looked up."""
    return rehearse(auction, ["lamp", "unicorn"], replicates=settings.get("replicates", 100), replies=(5, 60))


@scripted_model("bidder")
def bidder(request: Chat, sample: int) -> str:
    """A scripted model that replies without JSON one time in ten."""
    rng = Random(sample)
    price = rng.randint(5, 50)
    return f"I would pay {price}." if rng.random() < 0.1 else f'{{"price": {price}}}'
