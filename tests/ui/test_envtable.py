"""The table behind the edit dialog: undo, revert, secrets."""

from __future__ import annotations

from console.model import Overrides
from console.ui.envtable import MASK, EnvTable, bad_name, is_secret

DECLARED = {"STEPS": "60", "API_TOKEN": "abc"}


def test_only_differences_to_the_config_become_overrides() -> None:
    table = EnvTable(DECLARED, Overrides())

    table.put("STEPS", "90")
    table.put("NEW", "1")
    table.unset("API_TOKEN")

    found = table.overrides(Overrides(name="x"))
    assert (found.env, found.unset, found.name) == ({"STEPS": "90", "NEW": "1"}, ("API_TOKEN",), "x")


def test_every_step_can_be_undone() -> None:
    table = EnvTable(DECLARED, Overrides())
    before = table.rows
    table.put("STEPS", "90")
    table.unset("API_TOKEN")
    table.revert()

    while table.undo():
        pass

    assert table.rows == before
    assert table.overrides(Overrides()) == Overrides()


def test_an_edit_that_is_opened_again_shows_what_was_changed() -> None:
    table = EnvTable(DECLARED, Overrides(env={"STEPS": "90"}, unset=("API_TOKEN",)))

    assert {row.name: row.value for row in table.rows} == {"STEPS": "90", "API_TOKEN": None}


def test_values_that_look_secret_are_masked() -> None:
    row = next(row for row in EnvTable(DECLARED, Overrides()).rows if row.name == "API_TOKEN")

    assert row.shown(row.value) == MASK
    assert is_secret("HF_TOKEN")
    assert not is_secret("STEPS")


def test_names_that_no_shell_would_take_are_refused() -> None:
    assert bad_name("A_1") == ""
    assert bad_name("1A")
    assert bad_name("A=B")
    assert bad_name("A\n")
