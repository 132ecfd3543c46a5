"""Model servers that workers have started, and indexes that find the work of workers."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "servers",
        sa.Column("account", sa.Text, primary_key=True),
        sa.Column("url", sa.Text, primary_key=True),
        sa.Column("holder", sa.Text, primary_key=True),
        sa.Column("process", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    # So that nothing has to pass trials that others have, or that have ended.
    free, open_, done = sa.text("shard IS NULL AND NOT done"), sa.text("NOT done"), sa.text("done")
    op.create_index("work_free", "work", ["trial"], sqlite_where=free, postgresql_where=free)
    op.create_index("work_of_shards", "work", ["shard", "trial"], sqlite_where=open_, postgresql_where=open_)
    op.create_index("work_done", "work", ["trial"], sqlite_where=done, postgresql_where=done)
