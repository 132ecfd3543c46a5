"""What the new columns of a table are called, where the table has such names already. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class Columns(NamedTuple):
    """The names of the new columns; `fields` and `reasons` by property and check."""

    model: str
    reply: str | None
    fields: dict[str, str]
    checks: dict[str, str]
    reasons: dict[str, str]
    status: str
    fault: str

    @property
    def all(self) -> list[str]:
        """The new columns in their order."""
        found = [self.model, *([self.reply] if self.reply else []), *self.fields.values()]
        for check, name in self.checks.items():
            found += [name, *([self.reasons[check]] if check in self.reasons else [])]
        return [*found, self.status, self.fault]

    def renamed(self) -> list[tuple[str, str]]:
        """What was to be called so, and is called otherwise."""
        plain = {"model": self.model, "reply": self.reply or "reply", "status": self.status, "fault": self.fault}
        pairs = [*plain.items(), *self.fields.items(), *self.checks.items()]
        pairs += [(f"{check} reason", name) for check, name in self.reasons.items()]
        return [(wanted, name) for wanted, name in pairs if wanted != name]


def plan_columns(
    there: Sequence[str], schema: dict[str, Any] | None, checks: Sequence[str], judged: Iterable[str]
) -> Columns:
    """Names that no column has yet: `reply_2` where there is a `reply`, `reply_answer` where there is an `answer`."""
    taken = set(there)
    judged = set(judged)
    properties = list((schema or {}).get("properties", {}))
    model = _free("model", taken)
    reply = None if properties else _free("reply", taken)
    fields = {name: _free(name if name not in taken else f"reply_{name}", taken) for name in properties}
    named: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for check in checks:
        named[check] = _free(check, taken)
        if check in judged:
            reasons[check] = _free(f"{check} reason", taken)
    return Columns(model, reply, fields, named, reasons, _free("status", taken), _free("fault", taken))


def _free(name: str, taken: set[str]) -> str:
    """A name that is not taken, which it is from now on."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found
