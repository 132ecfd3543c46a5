"""schemathesis over the whole API: no server error, and no answer that the OpenAPI document does not have."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from pydantic import ValidationError
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from groundswell import compose
from groundswell.web.app import create_app
from groundswell.web.background import Background
from groundswell.web.requests import BatchBody, SimulationBody
from groundswell.web.services import Services
from groundswell.web.settings import ServerSettings
from tests.properties import examples, full
from tests.web.scene import MODEL, Api

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
OF_ENTITIES = {"entity_id": "/api/entities", "entity_type_id": "/api/entity-types"}
KNOWN = ("batch_id", "simulation_id", "run_id", *OF_ENTITIES)


def described() -> Any:
    """The OpenAPI document, from an application that was never started."""
    background = Background(lambda: compose.open("never.db"), running=1, waiting=0)
    return create_app(Services(ServerSettings(model=MODEL), background)).openapi()


def loaded(*, coverage: bool) -> BaseSchema:
    config = SchemathesisConfig.from_dict({"phases": {"coverage": {"enabled": coverage}}})
    return schemathesis.openapi.from_dict(described(), config=config)


STARTS = "^/api/experiments/.+/.+"
"""What starts experiments, or estimates them: every case computes something, so that there are few of them."""
schema = loaded(coverage=full()).exclude(path_regex=STARTS)
starting = loaded(coverage=False).include(path_regex=STARTS)


class There:
    """Things of which there is one when they are asked for: other calls may have deleted the last."""

    def __init__(self, api: Api) -> None:
        self._api = api

    @property
    def batch(self) -> str:
        listed = self._api("GET", "/batch-simulations?limit=1")
        if listed:
            return str(listed[0]["id"])
        id_: str = self._api.create(num_simulations=1)
        self._api.ended(id_)
        return id_

    def named(self, name: str) -> str:
        """The value of a parameter of that name."""
        if name in OF_ENTITIES:
            self._api.http.post(OF_ENTITIES[name], json={"id": "spare", "name": "Spare"})
            return "spare"
        run = self.batch.removeprefix("batch-")
        return {"batch_id": f"batch-{run}", "simulation_id": f"sim-{run}-1", "run_id": run, "key": ""}[name]


def known(case: Any, there: There) -> bool:
    """Have a case be about what is there; returns whether that changed anything."""
    names = [name for name in case.path_parameters or {} if name in KNOWN]
    for name in names:
        case.path_parameters[name] = there.named(name)
    if isinstance(case.body, dict) and isinstance(case.body.get("entity_ids"), list):
        case.body["entity_ids"] = ["entity-id-1", "entity-id-2", "entity-id-3"]
        for field in ("num_simulations", "interaction_size", "n_turns", "simulation_rounds"):
            if isinstance(case.body.get(field), int):
                case.body[field] = 1 + abs(case.body[field]) % 2
        case.body.pop("model", None)
        return fits(case.body)
    return bool(names)


def fits(body: dict[str, Any]) -> bool:
    """Whether a body would be taken; one that is wrong was refused before."""
    kind = BatchBody if "num_simulations" in body else SimulationBody
    try:
        kind.model_validate(body)
    except ValidationError:
        return False
    return True


@pytest.mark.sampled(every=4)
@schema.parametrize()
@settings(
    max_examples=examples(8),
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    database=None,
)
def test_every_answer_is_as_described(case: Any, shared: Api) -> None:
    case.call_and_validate(base_url=shared.server.url, checks=CHECKS)
    if known(case, There(shared)):
        case.call_and_validate(base_url=shared.server.url, checks=CHECKS)


@pytest.mark.sampled(every=4)
@starting.parametrize()
@settings(
    max_examples=examples(6),
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    database=None,
)
def test_every_answer_of_what_starts_experiments_is_as_described(case: Any, shared: Api) -> None:
    if isinstance(case.body, dict):
        case.body["max_calls"] = 0  # a valid body would start a real experiment, of any size
    case.call_and_validate(base_url=shared.server.url, checks=CHECKS, timeout=60)
