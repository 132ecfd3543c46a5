"""A checksum for the content of every row; rows that are there have none."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLES = ("runs", "trials", "asks", "outcomes", "waves", "cache", "documents")


def upgrade() -> None:
    for table in TABLES:
        op.add_column(table, sa.Column("checksum", sa.BigInteger))
