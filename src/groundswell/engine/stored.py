"""A run as it can be read: its trials as a table, what was said in one of them, and how far it is."""

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
    """What can be read of a run: while it goes on, when it is over, and after its engine was closed."""

    def __init__(self, record: RunRecord, results: Results) -> None:
        self.record = record
        self._results = results

    @property
    def summary(self) -> Summary:
        """How far the run is, as `--json` prints it at the end."""
        return summarise(self.record)

    @overload
    def frame(self, *, pandas: Literal[False] = False) -> polars.DataFrame: ...
    @overload
    def frame(self, *, pandas: bool = False) -> Any: ...
    def frame(self, *, pandas: bool = False) -> Any:
        """The trials as a polars DataFrame, or one of pandas: a row for each, with what was delivered by now.

        The columns are those of `runs export`: key, program, status, fault_kind, fault_message, and `spec.` and
        `result.` with the fields of specs and results. What is nested below those is JSON text.
        """
        return self._results.frame(pandas=pandas)

    @property
    def rows(self) -> Rows:
        """The rows of data that programs recorded with `trial.row`, of all trials that are usable by now."""
        from groundswell.stats.rows import Rows

        return Rows(self._results.rows())

    def transcript(self, trial: str | Outcome[Any]) -> Transcript:
        """What was said in a trial, given its key, the beginning of it, or its outcome. Asks nobody anything.

        Prompts are shown where the trial's program is loaded: import its module first. A run in a store may come from
        somebody else, so nothing but Groundswell's own experiments is imported for that.
        """
        row, fault = self._results.trial(trial.key if isinstance(trial, Outcome) else trial)
        said = exchanges(self._program(row.program), row, self.record.seed, self._results.recorded(row))
        status = "unfinished" if row.outcome is None else "usable" if fault is None else "missing"
        result = row.outcome if status == "usable" else None
        return Transcript(row.key, row.program, status, row.spec, result, fault, said)

    def kept(self, name: str) -> str | None:
        """What the run's driver kept under a name: see `Run.keep`."""
        return self._results.kept(name)

    def _program(self, name: str) -> Program[Any, Any] | None:
        """A program that is loaded, or one of Groundswell's own, which comes with its driver."""
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
