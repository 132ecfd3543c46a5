"""Runs name their drivers independently of where the code is, and say which release made them."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

RENAMED = {
    "prompt_evolution.evolving:evolve": "prompt-evolution/evolve",
    "prompting.asking:ask_models": "prompting/ask",
    "prompting.mapping:map_rows": "prompting/map",
    "query_mutation.evaluating:evaluate": "query-mutation/evaluate",
    "query_mutation.training:train": "query-mutation/train",
    "secret_game.playing:tournament": "secret-game/tournament",
    "secret_game.playing:play": "secret-game/play",
    "secret_game.selftest.driving:selftest": "secret-game/selftest",
    "simulations.driving:converse": "simulations/converse",
    "simulations.driving:simulate": "simulations/simulate",
    "simulations.writing:write": "simulations/write",
}


def upgrade() -> None:
    op.add_column("runs", sa.Column("location", sa.Text))
    op.add_column("runs", sa.Column("release", sa.Text))
    runs = sa.table("runs", sa.column("driver"), sa.column("checksum"))
    op.execute(runs.update().values(checksum=None))  # checksums cover the new columns from now on
    for before, after in RENAMED.items():
        op.execute(runs.update().where(runs.c.driver == f"groundswell.experiments.{before}").values(driver=after))
