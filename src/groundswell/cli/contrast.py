"""`groundswell contrast`: compare two simulation batches."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from rich.table import Table
from rich.text import Text

from groundswell.cli import output
from groundswell.cli.options import StoreFlags
from groundswell.cli.stored import opened
from groundswell.errors import SettingsError
from groundswell.experiments.options import Flag
from groundswell.experiments.simulations.blocks import contrast_blocks
from groundswell.experiments.simulations.contrasting import Contrast
from groundswell.experiments.simulations.experiment import contrast_of
from groundswell.reporting.terminal import block_lines


def contrast(
    flags: StoreFlags,
    run: Annotated[
        str,
        Meta(description="Name, run id or batch id of a batch. NAME:CONDITION is one condition of a study."),
        Flag(argument=True, metavar="RUN"),
    ],
    other: Annotated[
        str,
        Meta(description="Batch or condition to compare it with."),
        Flag(argument=True, metavar="OTHER"),
    ],
    *,
    by: Annotated[
        list[str] | None,
        Meta(
            description="Break the difference down by this attribute. Can be repeated or comma-separated. Attributes "
            "of --by in either batch are always included."
        ),
        Flag(metavar="ATTRIBUTE"),
    ] = None,
) -> None:
    """Compare the answers of two batches or conditions.

    For example two models, two methods, entities alone and in pairs, or two conditions of one study.
    """
    with opened(flags.store) as store:
        try:
            with output.working("reading the answers"):
                found = contrast_of(store, run, other, by or [])
        except SettingsError as error:
            raise SettingsError(f"--{error}" if error.field == "by" else str(error), field=error.field) from error
    if flags.json:
        output.print_json(found)
    else:
        print_contrast(found.contrast)


def print_contrast(found: Contrast) -> None:
    """Print the comparison of two batches."""
    for number, block in enumerate(contrast_blocks(found)):
        if number and block.title:
            output.line()
        for each in block_lines(block):
            if isinstance(each, Table):
                output.print_table(each)
            elif isinstance(each, str | Text):
                output.line(each)
