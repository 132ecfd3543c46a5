"""Names of the new columns of a table, without conflicts with existing ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class Columns(NamedTuple):
    """The names of the new columns. `fields` is keyed by schema property, `checks` and `reasons` by check."""

    model: str
    reply: str | None
    fields: dict[str, str]
    checks: dict[str, str]
    reasons: dict[str, str]
    status: str
    fault: str

    @property
    def all(self) -> list[str]:
        """The new columns in order."""
        found = [self.model, *([self.reply] if self.reply else []), *self.fields.values()]
        for check, name in self.checks.items():
            found += [name, *([self.reasons[check]] if check in self.reasons else [])]
        return [*found, self.status, self.fault]

    def renamed(self) -> list[tuple[str, str]]:
        """Pairs of wanted and actual name, for columns that had to be renamed."""
        plain = {"model": self.model, "reply": self.reply or "reply", "status": self.status, "fault": self.fault}
        pairs = [*plain.items(), *self.fields.items(), *self.checks.items()]
        pairs += [(f"{check} reason", name) for check, name in self.reasons.items()]
        return [(wanted, name) for wanted, name in pairs if wanted != name]


def plan_columns(
    there: Sequence[str], schema: dict[str, Any] | None, checks: Sequence[str], judged: Iterable[str]
) -> Columns:
    """Unused names: `reply_2` if there is a column `reply`, `reply_answer` if there is a column `answer`."""
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
    """An unused name, which is added to `taken`."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found
