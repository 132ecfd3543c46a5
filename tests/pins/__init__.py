"""What users can observe of the product, recorded in `expected/`, so that a change of it cannot go unnoticed.

A test fails when an expectation is missing or differs. To record expectations anew, on purpose:

    GROUNDSWELL_RECORD_PINS=1 pytest tests/pins

and then read the diff. JSON objects, files and the OpenAPI document must be exactly as recorded. Public names,
parameters, commands and flags may grow.
"""
