"""What is said of a batch beside its asks: whose it is, for which model, what it is likely to cost."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("waves", sa.Column("about", sa.Text))
