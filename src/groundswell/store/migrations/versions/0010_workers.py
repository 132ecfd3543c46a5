"""Trials that are run by workers, the counters of each worker, and the limits that processes share."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "shards",
        sa.Column("run", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("holder", sa.Text),
        sa.Column("counters", sa.Text, nullable=False),
        sa.Column("room", sa.Integer, nullable=False),
        sa.Column("stopped", sa.Boolean, nullable=False),
        sa.Column("problem", sa.Text),
        sa.Column("granted", sa.Text),
    )
    op.create_table(
        "shares",
        sa.Column("limiter", sa.Text, primary_key=True),
        sa.Column("holder", sa.Text, primary_key=True),
        sa.Column("process", sa.Text, nullable=False),
        sa.Column("wants", sa.Integer, nullable=False),
        sa.Column("slots", sa.Integer, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_table(
        "work",
        sa.Column("trial", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=False),
        sa.Column("shard", sa.Integer),
        sa.Column("again", sa.Boolean, nullable=False),
        sa.Column("done", sa.Boolean, nullable=False),
    )
