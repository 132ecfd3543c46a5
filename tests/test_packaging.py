"""The source distribution contains the whole project, and the wheel only the package."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import groundswell

ROOT = Path(__file__).parents[1]
LEFT_OUT = (".github/", "MANIFEST.in")
"""Files of the repository that the source distribution need not have. setuptools adds MANIFEST.in itself."""
BUILD = "import sys; from setuptools import build_meta as b; out = sys.argv[1]; b.build_sdist(out); b.build_wheel(out)"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the list of files that git has"),
]


def project_files() -> set[str]:
    """All files of the repository, those that are not committed yet included."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return {name for name in listed if (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a source distribution and a wheel, built by setuptools from a clean copy of the repository."""
    copy, out = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("dist")
    for name in project_files():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    (copy / "examples" / "left.db").touch()
    (copy / "tests" / "__pycache__").mkdir(exist_ok=True)
    (copy / "tests" / "__pycache__" / "old.cpython-311.pyc").touch()
    subprocess.run([sys.executable, "-c", BUILD, str(out)], cwd=copy, capture_output=True, check=True)
    return out


def test_the_source_distribution_has_every_file_of_the_project(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        packed = {member.name.partition("/")[2] for member in archive if member.isfile()}
    wanted = {name for name in project_files() if not name.startswith(LEFT_OUT)}
    assert wanted - packed == set()
    made = {name for name in packed - project_files() if ".egg-info/" not in name}
    assert made == {"PKG-INFO", "setup.cfg"}


def test_the_wheel_has_the_package_alone(built: Path) -> None:
    (path,) = built.glob("*.whl")
    packed = set(zipfile.ZipFile(path).namelist())
    metadata = f"groundswell-{groundswell.__version__}.dist-info/"
    package = {name.removeprefix("src/") for name in project_files() if name.startswith("src/")}
    assert {name for name in packed if not name.startswith(metadata)} == package
    assert f"{metadata}licenses/LICENSE" in packed


def test_the_citation_names_this_version() -> None:
    assert f"\nversion: {groundswell.__version__}\n" in (ROOT / "CITATION.cff").read_text()
