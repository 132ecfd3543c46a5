"""Read access to a run: its trials as a table, transcripts, and progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from groundswell.engine.driver import BUILT_IN, load_stored_driver
from groundswell.engine.outcome import Outcome
from groundswell.engine.ports import Results
from groundswell.engine.records import RunRecord
from groundswell.engine.replay import exchanges
from groundswell.engine.summary import Summary, figures, heading, summarise
from groundswell.errors import GroundswellError
from groundswell.program.trial import Program, find_program
from groundswell.reporting import notebook
from groundswell.reporting.transcript import Transcript

if TYPE_CHECKING:
    import polars

    from groundswell.stats.rows import Rows


class StoredRun:
    """Read access to a run, while it runs, after it has ended, and after its engine was closed."""

    def __init__(self, record: RunRecord, results: Results) -> None:
        self.record = record
        self._results = results

    @property
    def summary(self) -> Summary:
        """The current summary of the run."""
        return summarise(self.record)

    @overload
    def frame(self, *, pandas: Literal[False] = False) -> polars.DataFrame: ...
    @overload
    def frame(self, *, pandas: bool = False) -> Any: ...
    def frame(self, *, pandas: bool = False) -> Any:
        """Return the trials as a polars DataFrame, with one row per trial.

        The columns are those of `groundswell runs export`: `key`, `program`, `status`, `fault_kind`, `fault_message`,
        and a column for each field of specs (`spec.NAME`) and results (`result.NAME`). Nested values are JSON text.

        Args:
            pandas: Return a pandas DataFrame instead.
        """
        return self._results.frame(pandas=pandas)

    @property
    def rows(self) -> Rows:
        """The rows that programs recorded with `trial.row`, of all trials that have a result so far."""
        from groundswell.stats.rows import Rows

        return Rows(self._results.rows())

    def transcript(self, trial: str | Outcome[Any]) -> Transcript:
        """Return the transcript of a trial. No request is sent.

        Prompts are included if the program of the trial is loaded, so import its module first. A store may come from
        somebody else, so only Groundswell's own experiments are imported automatically.

        Args:
            trial: Key of the trial, the beginning of the key, or its outcome.

        Raises:
            RunError: If no trial, or more than one, has this key.
        """
        row, fault = self._results.trial(trial.key if isinstance(trial, Outcome) else trial)
        said = exchanges(self._program(row.program), row, self.record.seed, self._results.recorded(row))
        status = "unfinished" if row.outcome is None else "usable" if fault is None else "missing"
        result = row.outcome if status == "usable" else None
        return Transcript(row.key, row.program, status, row.spec, result, fault, said)

    def kept(self, name: str) -> str | None:
        """What the driver stored under a name with `Run.keep`; None if there is nothing."""
        return self._results.kept(name)

    def _program(self, name: str) -> Program[Any, Any] | None:
        """A program that is loaded, or one of Groundswell's own, which is loaded with its driver."""
        if find_program(name) is None and self.record.driver in BUILT_IN:
            try:
                load_stored_driver(self.record.driver)
            except GroundswellError:
                return None
        return find_program(name)

    def __repr__(self) -> str:
        counters = self.record.counters
        done = f"{counters.usable} usable of {counters.planned} trials"
        return f"<run {self.record.title!r}: {self.record.status}, {done}>"

    def _repr_html_(self) -> str:
        counters, summary = self.record.counters, self.summary
        rows = [
            *figures(summary),
            ("tokens", f"{counters.input_tokens:,} in, {counters.output_tokens:,} out"),
            ("seed", str(self.record.seed)),
        ]
        for kind, many, key, message in self._results.fault_counts():
            rows.append(("missing", f"{many} × {kind}, as in trial {key}: {message}"))
        return notebook.fragment([heading(summary), notebook.table(rows)])
