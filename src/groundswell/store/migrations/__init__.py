"""Schema changes, one file each in `versions`, applied by Alembic. A new store is created at once instead."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa


def upgrade(connection: sa.Connection, revision: str = "head") -> None:
    """Bring an older store up to date, inside the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
