"""Injected faults, by rate or by script, the same in every run. Pure.

A rule says which fault to inject, into which requests, and how often. For every request the rules are tried in order,
and the first that applies wins. Chance depends on the emulator's seed, the rule and the number of requests that it has
seen: the same requests in the same order get the same faults.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

import msgspec

from groundswell.emulator.chance import draw
from groundswell.errors import SettingsError

OK = "ok"
LONGEST_WAIT = 1e9
"""Longest `retry_after` of a rule, in seconds: a later date cannot be written."""
RetryForm = Literal["seconds", "milliseconds", "date"]


class Stage(StrEnum):
    """When a fault is injected."""

    REQUEST = "request"
    """Before any work is done: nothing is charged."""
    REPLY = "reply"
    """The reply was made and charged, but something else arrives."""
    BATCH = "batch"
    """When a batch is created: the fault decides how it ends."""
    LINE = "line"
    """When one request of a batch is processed."""
    RESULTS = "results"
    """When the results of a batch are read."""


class Kind(NamedTuple):
    """One kind of fault."""

    stage: Stage
    meaning: str
    status: int | None = None


KINDS: dict[str, Kind] = {
    "429": Kind(Stage.REQUEST, "rate limited, with Retry-After", 429),
    "429-bare": Kind(Stage.REQUEST, "rate limited, without Retry-After", 429),
    "quota": Kind(Stage.REQUEST, "no credit left (OpenAI: 429 insufficient_quota; Anthropic: 400)"),
    "400": Kind(Stage.REQUEST, "bad request", 400),
    "401": Kind(Stage.REQUEST, "bad key", 401),
    "403": Kind(Stage.REQUEST, "not allowed", 403),
    "404": Kind(Stage.REQUEST, "not found", 404),
    "408": Kind(Stage.REQUEST, "request time-out", 408),
    "409": Kind(Stage.REQUEST, "conflict", 409),
    "413": Kind(Stage.REQUEST, "too large", 413),
    "500": Kind(Stage.REQUEST, "server error", 500),
    "502": Kind(Stage.REQUEST, "bad gateway, as an HTML page", 502),
    "503": Kind(Stage.REQUEST, "unavailable", 503),
    "504": Kind(Stage.REQUEST, "gateway time-out", 504),
    "529": Kind(Stage.REQUEST, "overloaded", 529),
    "context": Kind(Stage.REQUEST, "the prompt is longer than the model's context", 400),
    "drop": Kind(Stage.REQUEST, "the connection is closed without an answer"),
    "hang": Kind(Stage.REQUEST, "no answer, ever"),
    "html": Kind(Stage.REQUEST, "200 with an HTML page in place of the reply"),
    "drop-after": Kind(Stage.REPLY, "charged, but the connection is closed before the reply is sent"),
    "truncated": Kind(Stage.REPLY, "the connection is closed in the middle of the body"),
    "malformed": Kind(Stage.REPLY, "a complete answer whose body is not JSON"),
    "wrong-type": Kind(Stage.REPLY, "the right body under the wrong content type"),
    "empty": Kind(Stage.REPLY, "no choices, no content"),
    "refusal": Kind(Stage.REPLY, "the model refuses"),
    "filter": Kind(Stage.REPLY, "the content filter ends the reply"),
    "stream-error": Kind(Stage.REPLY, "a stream that ends in an error after it has begun"),
    "batch-failed": Kind(Stage.BATCH, "validation fails for an internal reason"),
    "bad-lines": Kind(
        Stage.BATCH, "validation rejects about a tenth of the lines (at least one), although they are valid"
    ),
    "batch-stalls": Kind(Stage.BATCH, "half of the requests are not processed; the batch expires"),
    "batch-stuck": Kind(Stage.BATCH, "no request is processed; the batch expires"),
    "enqueued": Kind(Stage.BATCH, "the limit of enqueued tokens is exceeded; validation fails"),
    "enqueued-at-create": Kind(Stage.BATCH, "the limit of enqueued tokens is exceeded; creation answers 429", 429),
    "line-500": Kind(Stage.LINE, "a request of a batch ends in a server error"),
    "line-529": Kind(Stage.LINE, "a request of a batch ends in an overload error"),
    "line-429": Kind(Stage.LINE, "a request of a batch ends in a rate limit error"),
    "line-400": Kind(Stage.LINE, "a request of a batch is rejected as invalid"),
    "line-bare": Kind(Stage.LINE, "a request of a batch ends in an error without a response"),
    "line-lost": Kind(Stage.LINE, "a request of a batch is missing from the results"),
    "line-twice": Kind(Stage.LINE, "a request of a batch appears twice in the results"),
    "line-garbled": Kind(Stage.LINE, "a line of the results is truncated and is not JSON"),
    "line-stranger": Kind(Stage.LINE, "the results have an extra line with an unknown custom_id"),
    "line-filter": Kind(Stage.LINE, "the content filter ends a reply of a batch"),
    "low-balance": Kind(Stage.LINE, "no credit left while a batch is processed"),
    "results-cut": Kind(Stage.RESULTS, "the connection is closed in the middle of the results"),
    "results-short": Kind(Stage.RESULTS, "a complete answer that ends in the middle of a line of the results"),
}


def _of(*stages: Stage) -> frozenset[str]:
    return frozenset(name for name, kind in KINDS.items() if kind.stage in stages)


CHAT = _of(Stage.REQUEST, Stage.REPLY)
"""Faults that a chat request can get; the others are named alike."""
EMBED = CHAT - {"refusal", "filter", "stream-error"}
ERRAND = EMBED - {"empty", "context"}
OPENAI_BATCH = ERRAND | _of(Stage.BATCH)
ANTHROPIC_BATCH = OPENAI_BATCH - {"batch-failed", "bad-lines", "enqueued"}
RESULTS = ERRAND | _of(Stage.RESULTS)
LINE = _of(Stage.LINE)


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which fault to inject where, and how often: by `rate`, or in the order of a `script` (`ok` injects none).

    A 429 has a `retry_after` in seconds, written as `retry_as` says. `should_retry` is the header `x-should-retry`,
    which the official clients follow before anything else.
    """

    fault: str | None = None
    rate: float | None = None
    script: tuple[str, ...] = ()
    times: int | None = None
    path: str = "*"
    method: str = "*"
    model: str = "*"
    account: str = "*"
    retry_after: float = 1.0
    retry_as: RetryForm = "seconds"
    should_retry: bool | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The faults that this rule can inject."""
        given = self.script if self.fault is None else (self.fault, *self.script)
        return tuple(name for name in given if name != OK)

    def check(self) -> Rule:
        """The same rule, or a SettingsError that names the error in it."""
        for name in self.names:
            if name not in KINDS:
                raise SettingsError(f"fault {name!r}: unknown fault (known: {', '.join(KINDS)})")
        if self.fault is None and not self.script:
            raise SettingsError("a fault rule needs a `fault` (with a `rate`) or a `script`")
        if self.fault is not None and self.script:
            raise SettingsError("a fault rule cannot have both a `fault` and a `script`; remove one of them")
        if self.script and self.rate is not None:
            raise SettingsError("a fault rule with a `script` cannot have a `rate`; remove the `rate`")
        if self.rate is not None and not 0 <= self.rate <= 1:
            raise SettingsError(f"fault {self.fault!r}: rate {self.rate} must be between 0 and 1")
        if self.method != self.method.upper():
            raise SettingsError(
                f"fault rule: method {self.method!r} must be in upper case: use {self.method.upper()!r}"
            )
        if not 0 <= self.retry_after <= LONGEST_WAIT:
            told = f"retry_after {self.retry_after} must be between 0 and {LONGEST_WAIT:g} seconds"
            raise SettingsError(f"fault {self.fault or self.script!r}: {told}")
        return self


class Subject(NamedTuple):
    """A request that a fault may be injected into."""

    path: str
    model: str = ""
    account: str = ""
    method: str = "POST"


class Struck(NamedTuple):
    """A fault to inject, with its rule."""

    name: str
    kind: Kind
    rule: Rule


class Faults:
    """The active rules, and how often each was applied."""

    def __init__(self, rules: Sequence[Rule] = (), seed: int = 0) -> None:
        self.rules = tuple(rule.check() for rule in rules)
        self._seed = seed
        self._names = [frozenset(rule.names) for rule in self.rules]
        self._seen = [0] * len(self.rules)
        self._struck = [0] * len(self.rules)

    def strike(self, subject: Subject, able: frozenset[str]) -> Struck | None:
        """The fault of a request, if any, out of those that it can get."""
        for number, rule in enumerate(self.rules):
            if self._names[number].isdisjoint(able) or not _matches(rule, subject):
                continue
            if rule.times is not None and self._struck[number] >= rule.times:
                continue
            name = self._by_rate(number, rule) if rule.fault is not None else self._by_script(number, rule, able)
            if name is not None:
                self._struck[number] += 1
                return Struck(name, KINDS[name], rule)
        return None

    def _by_rate(self, number: int, rule: Rule) -> str | None:
        self._seen[number] += 1
        strikes = rule.rate is None or draw(self._seed, "fault", number, self._seen[number]) < rule.rate
        return rule.fault if strikes else None

    def _by_script(self, number: int, rule: Rule, able: frozenset[str]) -> str | None:
        """The next fault of a script. It waits for a request that can get it."""
        at = self._seen[number]
        if at >= len(rule.script):
            return None
        name = rule.script[at]
        if name != OK and name not in able:
            return None
        self._seen[number] += 1
        return None if name == OK else name

    def show(self) -> list[dict[str, Any]]:
        """The rules, each with how often it was applied."""
        return [
            {**msgspec.to_builtins(rule), "struck": struck}
            for rule, struck in zip(self.rules, self._struck, strict=True)
        ]


def _matches(rule: Rule, subject: Subject) -> bool:
    return (
        (rule.path == "*" or fnmatchcase(subject.path, rule.path))
        and (rule.method == "*" or fnmatchcase(subject.method, rule.method))
        and (rule.model == "*" or fnmatchcase(subject.model, rule.model))
        and (rule.account == "*" or fnmatchcase(subject.account, rule.account))
    )


def parse_fault(text: str) -> Rule:
    """Read `NAME[=RATE][@[METHOD ]PATH]`, or `NAME,NAME,...[@[METHOD ]PATH]` as a script."""
    what, at, where = text.partition("@")
    if at and not where.strip():
        raise SettingsError(f"fault {text!r}: there is no path after @; add one, such as @/v1/*")
    name, equals, rate = what.partition("=")
    method, path = _read_where(where)
    if "," in what:
        return Rule(script=tuple(part.strip() for part in what.split(",")), path=path, method=method).check()
    try:
        return Rule(fault=name.strip(), rate=float(rate) if equals else None, path=path, method=method).check()
    except ValueError:
        raise SettingsError(f"fault {text!r}: expected NAME=RATE, for example 429=0.05") from None


def _read_where(text: str) -> tuple[str, str]:
    """The method and path of `POST /v1/batches`; for `/v1/batches`, any method."""
    method, space, path = text.strip().partition(" ")
    return (method, path.strip()) if space else ("*", method or "*")
