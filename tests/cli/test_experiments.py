"""What every command of an experiment has: a configuration, two lengths of help, errors as JSON, a folder."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import polars
import pytest

from groundswell.cli.app import COMMANDS, app
from groundswell.cli.commands import Command, Group
from groundswell.store.journal import Store
from tests.cli.conftest import CommandLine

PLAY = ["play", "-m", "emulated/keeper,emulated/leaker:0.6", "-n", "6", "--messages", "4"]
MOST_LINES = 40


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)


def commands(group: Group, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], click.Command]:
    found: dict[tuple[str, ...], click.Command] = {}
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(None, name)
        assert command is not None
        found[*path, name] = command
        if isinstance(command, Group):
            found |= commands(command, (*path, name))
    return found


def test_no_help_is_longer_than_a_screen(cli: CommandLine) -> None:
    long = {}
    for path in commands(app):
        lines = len(cli(*path, "--help").stdout.splitlines())
        if lines > MOST_LINES:
            long[path] = lines
    assert long == {}


def test_the_long_help_has_every_flag_in_its_group(cli: CommandLine) -> None:
    shown = cli("play", "--help-all").stdout
    command = app.get_command(None, "play")
    assert isinstance(command, Command)
    flags = [flag for field in command.fields.values() for flag in field.flags]
    assert [flag for flag in flags if flag not in shown] == []
    groups = [line for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert groups[:3] == ["Game:", "Leak detection:", "Batching:"]
    assert set(groups[3:]) == {"Options:", "Limits:", "Common options:"}


def test_what_the_top_says_of_a_command_is_what_the_command_says(cli: CommandLine) -> None:
    for name in COMMANDS:
        command = app.get_command(None, name)
        assert command is not None
        assert command.help, name


def test_the_top_of_the_command_line_loads_nothing_heavy() -> None:
    script = "import sys\nfrom groundswell.cli.app import app\napp(['--help'], standalone_mode=False)\n"
    script += "heavy = ('sqlalchemy', 'numpy', 'scipy', 'pyreqwest', 'fastapi')\n"
    script += "print([name for name in heavy if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"


def test_a_command_that_is_misspelt_is_guessed(cli: CommandLine) -> None:
    assert "did you mean 'simulate'?" in cli("simulat", status=2).stderr


class TestConfiguration:
    @pytest.mark.slow
    def test_it_is_printed_whole_and_gives_the_same_run(self, cli: CommandLine, tmp_path: Path) -> None:
        Path("words.txt").write_text("saffron trellis mandolin\nharbour lantern\n")
        printed = cli(*PLAY, "--secrets", "words.txt", "--seed", "7", "--print-config").stdout
        said = tomllib.loads(printed)
        assert said == {
            "models": ["emulated/keeper", "emulated/leaker:0.6"],
            "interactions": 6,
            "messages": 4,
            "secrets": [["saffron", "trellis", "mandolin"], ["harbour", "lantern"]],
            "seed": 7,
        }
        Path("words.txt").unlink()
        Path("game.toml").write_text(printed)
        assert not cli.store.exists()
        first = cli.json("play", "--config", "game.toml")
        written = Path("results", first["name"], "config.toml")
        assert written.read_text().startswith(f'# run {first["run_id"]}: "{first["name"]}"\n')
        again = cli.json("play", "--config", str(written))
        assert again["run_id"] == first["run_id"]

    def test_flags_go_before_it_and_paths_are_beside_it(self, cli: CommandLine, tmp_path: Path) -> None:
        (tmp_path / "there").mkdir()
        (tmp_path / "there" / "words.txt").write_text("saffron trellis\n")
        config = tmp_path / "there" / "game.toml"
        config.write_text('models = "emulated/keeper"\ninteractions = 50\nsecrets = "words.txt"\n')
        printed = cli("play", "--config", str(config), "-n", "3", "--print-config").stdout
        said = tomllib.loads(printed)
        assert (said["interactions"], said["secrets"]) == (3, [["saffron", "trellis"]])

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("mesages = 3", "--config game.toml: mesages: play has no such option; did you mean messages?"),
            ("messages = 1", "messages 1: must be at least 2"),
            ('messages = "two"', "messages two: must be a whole number"),
            ("messages = [3]", "messages: must be a whole number, and is a list"),
            ("interactions = 3\nnum_interactions = 4", "num_interactions: sets the same option as interactions"),
            ("models = ", "--config game.toml: Invalid value"),
            ('batch_service = "auto"\nvia = "live"', "batch_service: cannot be combined with via or schedule"),
        ],
    )
    def test_what_is_wrong_in_it_is_named_as_it_is_written(self, cli: CommandLine, text: str, said: str) -> None:
        Path("game.toml").write_text(text)
        assert said in cli("play", "--config", "game.toml", status=2).stderr

    def test_one_that_is_not_there(self, cli: CommandLine) -> None:
        assert "--config nothing.toml: No such file" in cli("play", "--config", "nothing.toml", status=2).stderr


def test_a_wrong_setting_is_told_as_json_too(cli: CommandLine) -> None:
    found = cli("play", "--messages", "1", "--json", status=2)
    assert json.loads(found.stdout) == {"error": "--messages 1: must be at least 2", "field": "messages"}
    assert found.stderr == "error: --messages 1: must be at least 2\n"


class TestFolder:
    @pytest.mark.slow
    def test_a_run_that_is_resumed_writes_where_it_was(self, cli: CommandLine) -> None:
        first = cli.json(*PLAY, "--out", "mine", "--max-calls", "5", status=3)
        Path("mine/report.html").unlink(missing_ok=True)
        cli("runs", "resume", first["run_id"], "--max-calls", "500")
        assert Path("mine/report.html").exists()
        assert not Path("results").exists()
        Path("mine/report.html").unlink()
        cli("runs", "report", first["run_id"])
        assert Path("mine/report.html").exists()

    @pytest.mark.slow
    def test_a_store_of_somebody_else_names_no_folder_of_ours(self, cli: CommandLine) -> None:
        first = cli.json(*PLAY, "--out", "mine")
        Path("precious").mkdir()
        store = Store(cli.store)
        id_ = f"{first['run_id']}/groundswell.results"
        body = store.documents.find("kept", id_)[id_].body
        store.documents.put("kept", id_, body.replace("/mine", "/precious"))
        store.close_reading()
        cli("runs", "resume", first["run_id"])
        assert list(Path("precious").iterdir()) == []
        assert Path("results", first["name"], "report.html").exists()

    @pytest.mark.slow
    def test_names_that_are_alike_have_folders_of_their_own(self, cli: CommandLine) -> None:
        for name in ("the game", "The Game", "the game"):
            cli(*PLAY, "--name", name)
        other, first = sorted(path.name for path in Path("results").iterdir())
        assert first == "the-game"
        assert other.startswith("The-Game-")

    @pytest.mark.slow
    def test_a_name_of_several_lines_is_one_line_of_the_configuration(self, cli: CommandLine) -> None:
        run = cli.json(*PLAY, "--name", "one\ntwo", "--out", "mine")
        assert tomllib.loads(Path("mine/config.toml").read_text())["interactions"] == 6
        cli("runs", "report", run["run_id"])
        assert not Path("results").exists()

    def test_a_report_of_a_run_that_is_none(self, cli: CommandLine) -> None:
        run = cli.run()
        assert "is not a run of a known experiment" in cli("runs", "report", run["run_id"], status=2).stderr

    def test_a_game_is_shown_with_its_findings(self, cli: CommandLine) -> None:
        run = cli.json(*PLAY)
        shown = cli("runs", "show", run["run_id"]).stdout
        assert "secrets leaked" in shown
        assert "comparisons" not in shown


class TestOwnExperiments:
    EXAMPLE = str(Path(__file__).parents[2] / "examples" / "ultimatum.py")
    MODELS = ("--proposer", "emulated/gpt-4o-mini", "--responder", "emulated/gpt-4o-mini")

    def test_the_example_is_short(self) -> None:
        assert len(Path(self.EXAMPLE).read_text().splitlines()) <= 80

    def test_the_guide_has_it_whole(self) -> None:
        guide = Path(__file__).parents[2] / "docs" / "writing-your-own.md"
        assert f'```python title="ultimatum.py"\n{Path(self.EXAMPLE).read_text()}```' in guide.read_text()

    def test_its_flags_are_shown(self, cli: CommandLine) -> None:
        shown = cli("run", self.EXAMPLE, "--help").stdout
        assert "One model offers a share of ten dollars" in shown
        for flag in ("--proposer", "--games", "--rounds", "--name", "--estimate", "--budget"):
            assert flag in shown
        assert "--games 0: must be at least 1" in cli("run", self.EXAMPLE, "--games", "0", status=2).stderr

    def test_it_runs_is_resumed_and_exported(self, cli: CommandLine) -> None:
        found = cli.json("run", self.EXAMPLE, *self.MODELS, "--games", "12", "--max-calls", "20", status=3)
        assert found["name"].startswith("ultimatum-")
        done = cli.json("runs", "resume", found["name"], "--max-calls", "500")
        assert done["trials"]["usable"] == 12
        assert {"group", "value", "low", "high", "n", "trials", "reason"} == set(
            done["analysis"]["accepted_by_offer"][0]
        )
        cli("runs", "export", found["name"], "--table", "rows", "--format", "csv", "--output", "rounds.csv")
        table = Path("rounds.csv").read_text().splitlines()
        assert table[0] == "trial,row,replicate,round,proposer,offer,accepted"
        assert len(table) == 1 + 12 * 3
        shown = cli("runs", "show", found["name"]).stdout
        assert "accepted_by_offer" in shown

    def test_it_is_estimated(self, cli: CommandLine) -> None:
        found = cli.json("run", self.EXAMPLE, "--proposer", "openai/gpt-4o-mini", "--games", "10", "--estimate")
        assert found["trials"] == [10, 10]
        assert not cli.store.exists()

    def test_a_driver_has_flags_for_its_settings(self, cli: CommandLine) -> None:
        example = Path(self.EXAMPLE).with_name("second_thoughts.py")
        shown = cli("run", f"{example}:second_thoughts", "--help").stdout
        assert "--replicates" in shown
        assert "--set" in cli("run", f"{example}:second_thoughts", "--help-all").stdout

    def test_a_file_without_an_experiment_says_so(self, cli: CommandLine) -> None:
        Path("mine.py").write_text("x = 1\n")
        assert (
            "mine.py: contains no experiment; name the experiment or driver" in cli("run", "mine.py", status=2).stderr
        )

    @pytest.mark.slow
    def test_a_new_one_is_written_and_passes_its_test(self, cli: CommandLine, tmp_path: Path) -> None:
        assert cli.json("new", "my-study")["files"] == ["my_study.py", "test_my_study.py"]
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_study.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert "--repeats" in cli("run", "my_study.py", "--help").stdout
        assert "already exists" in cli("new", "my-study", status=2).stderr
        assert "lower-case letters" in cli("new", "My Study", status=2).stderr


class TestCompletion:
    @pytest.mark.sampled
    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            ("groundswell pl", "play"),
            ("groundswell play --tier e", "encoded"),
            ("groundswell runs show ", "mine"),
            ("groundswell play --models local", "local/smollm2"),
        ],
    )
    def test_names_are_completed(
        self, cli: CommandLine, monkeypatch: pytest.MonkeyPatch, words: str, expected: str
    ) -> None:
        cli(*PLAY, "--name", "mine")
        parts = words.split(" ")
        env = {"COMP_WORDS": " ".join(parts), "COMP_CWORD": str(len(parts) - 1)}
        env |= {"_GROUNDSWELL_COMPLETE": "bash_complete", "GROUNDSWELL_STORE": str(cli.store)}
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        ended = subprocess.run(
            [sys.executable, "-c", "from groundswell.cli.app import main; main()"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert expected in ended.stdout, ended.stderr

    def test_the_script_is_shown_and_installed(
        self, cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("SHELL", "/bin/zsh")
        assert "_GROUNDSWELL_COMPLETE" in cli("--show-completion").stdout
        cli("--install-completion")
        assert "zsh_source groundswell" in (tmp_path / ".zshrc").read_text()
        assert "completion is already installed" in cli("--install-completion").stdout
        monkeypatch.setenv("SHELL", "/bin/odd")
        assert "completion works for bash, zsh, fish" in cli("--show-completion", status=2).stderr


class TestResultsOfOnesOwn:
    """What a user's experiment leaves is written where it was, whoever goes on with it."""

    MODELS = TestOwnExperiments.MODELS

    @pytest.mark.slow
    def test_a_resumed_run_writes_its_results(self, cli: CommandLine, tmp_path: Path) -> None:
        own = tmp_path / "copied_game.py"
        own.write_text(Path(TestOwnExperiments.EXAMPLE).read_text().replace('"ultimatum', '"copied-game'))
        cut = ["--games", "8", "--max-calls", "9", "--name", "cut"]
        cli("run", str(own), "play", *self.MODELS, *cut, status=3)
        script = "from groundswell.cli.app import main; main()"
        words = ["runs", "resume", "cut", "--max-calls", "500", "--store", str(cli.store)]
        resume = [sys.executable, "-c", script, *words]
        ended = subprocess.run(resume, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        assert "report: results/cut/report.html" in ended.stdout
        assert "beside it: trials.csv, rows.csv, analysis.json" in ended.stdout
        assert Path("results/cut/analysis.json").exists()
        report = [sys.executable, "-c", script, "runs", "report", "cut", "--store", str(cli.store)]
        again = subprocess.run(report, capture_output=True, text=True, check=False)
        assert again.returncode == 0, again.stderr
        assert "accepted_by_offer" in again.stdout

    def test_a_file_that_is_not_there(self, cli: CommandLine) -> None:
        assert "nothing.py: file not found" in cli("run", "nothing.py", status=2).stderr

    def test_a_list_that_is_read_is_given_once(self, cli: CommandLine) -> None:
        Path("one.txt").write_text("saffron trellis\n")
        told = cli("play", "--secrets", "one.txt", "--secrets", "two.txt", status=2).stderr
        assert told == "error: --secrets: is given twice; give it once\n"


class TestReportsOfOnesOwn:
    """An experiment whose report is made of its own blocks."""

    EXAMPLE = Path(__file__).parents[2] / "examples" / "coin.py"
    FEW = ("--model", "emulated/gpt-4o-mini", "--calls", "6")

    def test_its_sentence_and_figure_are_shown_everywhere(self, cli: CommandLine) -> None:
        ended = cli("run", str(self.EXAMPLE), *self.FEW, "--name", "coin")
        assert "of 6 calls are heads after 'Call the coin.'." in ended.stdout
        page = Path("results/coin/report.html").read_text()
        assert 'id="heads"' in page
        assert page.count("<svg") == 1
        assert {path.name for path in Path("results/coin").iterdir()} == {
            *("report.html", "analysis.json", "trials.csv", "rows.csv", "figures", "config.toml")
        }
        cli("runs", "report", "coin", "--format", "md")
        assert "![Up to" in Path("results/coin/report.md").read_text()
        first = Path("results/coin/report.md").stat().st_mtime_ns
        cli("runs", "report", "coin")
        assert Path("results/coin/report.md").stat().st_mtime_ns > first, "one of another form is kept up to date"

    def test_blocks_that_fail_cost_no_results(self, cli: CommandLine, tmp_path: Path) -> None:
        own = tmp_path / "broken.py"
        broken = self.EXAMPLE.read_text().replace("    rates: list[RowFigure]", "    1 / 0\n    rates: list[RowFigure]")
        own.write_text(broken.replace('"coin', '"broken-coin'))
        ended = cli("run", str(own), *self.FEW, "--name", "broken")
        assert "the `blocks` function of this experiment failed (ZeroDivisionError" in ended.stderr
        assert "18 usable of 18" in ended.stdout
        assert {"report.html", "trials.csv", "analysis.json"} <= {
            path.name for path in Path("results/broken").iterdir()
        }

    def test_without_matplotlib_figures_are_tables(self, cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        ended = cli("run", str(self.EXAMPLE), *self.FEW, "--name", "plain")
        assert "matplotlib is not installed, so the report has tables instead of figures" in ended.stderr
        page = Path("results/plain/report.html").read_text()
        assert "<svg" not in page
        assert "Call the coin. Heads or tails?" in page

    def test_an_export_has_the_form_that_its_name_says(self, cli: CommandLine) -> None:
        cli("run", str(self.EXAMPLE), *self.FEW, "--name", "coin")
        for name in ("rows.csv", "rows.json", "rows.parquet"):
            cli("runs", "export", "coin", "--table", "rows", "--output", name)
        assert Path("rows.csv").read_text().startswith("trial,row,")
        assert len(json.loads(Path("rows.json").read_text())) == 18
        assert polars.read_parquet("rows.parquet").height == 18
