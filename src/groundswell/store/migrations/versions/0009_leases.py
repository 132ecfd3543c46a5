"""Who works on a run, for databases that several machines use."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "holders",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("commits", sa.BigInteger, nullable=False),
        sa.Column("beat_at", sa.Float, nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
        sa.Column("process", sa.Text, nullable=False),
    )
    op.create_table(
        "leases",
        sa.Column("run", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("taken_at", sa.Float, nullable=False),
    )
    op.create_table(
        "commits",
        sa.Column("token", sa.Text, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
    )
