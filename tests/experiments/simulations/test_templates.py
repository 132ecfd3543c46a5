"""The templates are types of some richness, and can be sampled."""

from __future__ import annotations

import pytest

from groundswell.errors import SettingsError
from groundswell.experiments.simulations.sampling import sample
from groundswell.experiments.simulations.templates import names_of_templates, template, templates

FEWEST_NAMES = {"human": 0, "fantasy_character": 60, "organization": 60}


def test_there_are_three() -> None:
    assert set(names_of_templates()) == set(FEWEST_NAMES)
    assert [type_.id for type_ in templates()] == list(names_of_templates())


@pytest.mark.parametrize("name", FEWEST_NAMES)
def test_every_template_has_dimensions_of_all_kinds_and_names(name: str) -> None:
    type_ = template(name)
    assert type_.id == name
    assert 8 <= len(type_.dimensions) <= 14
    assert {each.type for each in type_.dimensions} == {"boolean", "categorical", "int", "float", "text"}
    assert all(each.description.endswith(".") for each in type_.dimensions)
    assert len(set(type_.names)) == len(type_.names) >= FEWEST_NAMES[name]
    assert len({entity.name for entity in sample(type_, 60, 1)}) == 60


def test_a_name_that_is_none_is_told_those_there_are() -> None:
    with pytest.raises(SettingsError, match=r"template '\.\./human': must be one of fantasy_character, human, org"):
        template("../human")
