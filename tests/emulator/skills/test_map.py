"""The map at the top of the package has every module on it."""

from __future__ import annotations

import re
from pathlib import Path

from groundswell.emulator import skills


def test_every_skill_is_on_the_map() -> None:
    listed = re.findall(r"^    (\w+\.py) ", skills.__doc__ or "", re.M)
    modules = {path.name for path in Path(skills.__file__).parent.glob("*.py")} - {"__init__.py"}
    assert sorted(listed) == sorted(modules)
