"""schemathesis over sequences of calls: what one answers with is what the next is about. No answer is undescribed."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, seed, settings
from hypothesis.errors import FlakyStrategyDefinition
from schemathesis.config import SchemathesisConfig

from tests.properties import examples
from tests.web.scene import REQUEST, Api
from tests.web.test_schema import CHECKS, described

STATEFUL = SchemathesisConfig.from_dict({"phases": {"stateful": {"enabled": True}}})
BODIES: dict[str, Any] = {
    "/api/experiments/secret-game/play": {"models": ["emulated/keeper"], "interactions": 2, "messages": 2},
    "/api/experiments/secret-game/play/check": {"models": ["emulated/keeper"], "interactions": 2, "messages": 2},
    "/api/experiments/secret-game/play/estimate": {"models": ["emulated/keeper"], "interactions": 2, "messages": 2},
    "/api/experiments/prompting/ask": {"prompt": "Why?", "model": ["emulated/gpt-4o-mini"]},
    "/api/batch-simulations": {**REQUEST, "num_simulations": 1, "n_turns": 1},
    "/api/simulations": {"context": "A talk", "entity_ids": ["entity-id-1", "entity-id-2"]},
    "/api/entities": {"name": "Spare"},
}
"""What begins something: a random body would be refused, and nothing would follow from it."""


@pytest.mark.slow
def test_sequences_of_calls_are_answered_as_described(api: Api) -> None:
    called: dict[str, int] = {}
    failures: list[Exception] = []
    sequences = 0
    schema = schemathesis.openapi.from_dict(described(), config=STATEFUL)

    class Workflow(schema.as_state_machine()):  # type: ignore[misc]  # made from the document
        """Any sequence that links between answers and parameters allow."""

        def setup(self) -> None:
            nonlocal sequences
            sequences += 1

        def before_call(self, case: Any) -> None:
            path = case.operation.path
            if case.method == "POST" and path in BODIES:
                case.body = dict(BODIES[path])

        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return {"base_url": api.server.url}

        def validate_response(self, response: Any, case: Any, additional_checks: Any = (), **how: Any) -> None:
            name = f"{case.method} {case.operation.path}"
            called[name] = called.get(name, 0) + (response.status_code < 400)
            try:
                case.validate_response(response, checks=CHECKS)
            except Exception as error:
                failures.append(error)
                raise

    wanted = examples(120)
    for start in range(20):
        try:
            seed(start)(Workflow).run(
                settings=settings(
                    max_examples=max(1, wanted - sequences),
                    stateful_step_count=10,
                    deadline=None,
                    suppress_health_check=list(HealthCheck),
                    database=None,
                )
            )
        except FlakyStrategyDefinition:
            if failures:
                raise failures[0] from None
            # A run went on in the meantime, so the same calls had other answers: go on with other calls.
            continue
        break
    assert sequences >= wanted, f"only {sequences} of {wanted} sequences were called"
    followed = [name for name, times in called.items() if times and "{" in name]
    assert len(followed) > 3, f"hardly anything was made and then looked at: {called}"
