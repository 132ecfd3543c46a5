"""The OpenAPI document of the server is exactly as recorded."""

from __future__ import annotations

import json

from tests.pins.expectations import check
from tests.pins.product import openapi


def test_the_openapi_document() -> None:
    document = openapi()
    document["info"].pop("version")
    check({"openapi.json": json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False).splitlines()})
