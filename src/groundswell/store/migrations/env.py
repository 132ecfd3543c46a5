"""Alembic's entry: run migrations on the connection that `upgrade` was given."""

from alembic import context

from groundswell.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=False,
    transaction_per_migration=False,
)
context.run_migrations()
