"""The cache has row numbers: replies are appended, and only their keys lie in an index."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

COLUMNS = "key, settlement, created_at, checksum"


def upgrade() -> None:
    op.rename_table("cache", "old_cache")
    op.create_table(
        "cache",
        sa.Column("key", sa.LargeBinary, primary_key=True),
        sa.Column("settlement", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("checksum", sa.BigInteger),
    )
    op.execute(f"INSERT INTO cache ({COLUMNS}) SELECT {COLUMNS} FROM old_cache")
    op.drop_table("old_cache")
