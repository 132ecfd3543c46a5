"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uid", sa.Text, nullable=False, unique=True),
        sa.Column("name", sa.Text, unique=True),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("driver", sa.Text),
        sa.Column("settings", sa.Text),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("sources", sa.Text, nullable=False),
        sa.Column("parent", sa.Text),
        sa.Column("cut", sa.Text),
        sa.Column("counters", sa.Text, nullable=False),
        sa.Column("analysis", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("cancel", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
    )
    op.create_table(
        "trials",
        sa.Column("id", BIG, primary_key=True),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("program", sa.Text, nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("abandoned", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.create_table(
        "asks",
        sa.Column("id", BIG, primary_key=True),
        sa.Column("trial", sa.BigInteger, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.LargeBinary, nullable=False),
        sa.Column("wave", sa.BigInteger),
        sa.Column("fault", sa.Text),
        sa.Column("settlement", sa.Text, nullable=False),
    )
    op.create_index("asks_by_trial", "asks", ["trial"])
    op.create_table(
        "outcomes",
        sa.Column("trial", BIG, primary_key=True),
        sa.Column("fault", sa.Text),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "waves",
        sa.Column("id", BIG, primary_key=True),
        sa.Column("account", sa.Text, nullable=False),
        sa.Column("transport", sa.Text, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("asks", sa.Text, nullable=False),
        sa.Column("sent_at", sa.Float, nullable=False),
        sa.Column("receipt", sa.Text),
        sa.Column("ended_at", sa.Float),
    )
    open_only = sa.text("ended_at IS NULL")
    op.create_index("open_waves", "waves", ["id"], sqlite_where=open_only, postgresql_where=open_only)
    op.create_table(
        "cache",
        sa.Column("key", sa.LargeBinary, primary_key=True),
        sa.Column("settlement", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sqlite_with_rowid=False,
    )
