"""The table behind the edit dialog: undo, revert, secrets."""

from __future__ import annotations

import pytest

from console.host import secretenv
from console.model import Overrides
from console.ui.edittable import MASK, EditTable, Kind, Row, bad_args, bad_name, is_secret

DECLARED = {"STEPS": "60", "API_TOKEN": "abc"}


def row_of(table: EditTable, name: str) -> Row:
    return next(row for row in table.rows if row.name == name)


def test_only_differences_to_the_config_become_overrides() -> None:
    table = EditTable(DECLARED, Overrides())

    table.put("STEPS", "90")
    table.put("NEW", "1")
    table.unset(row_of(table, "API_TOKEN"))

    found = table.overrides(Overrides(name="x"))
    assert (found.env, found.unset, found.name) == ({"STEPS": "90", "NEW": "1"}, ("API_TOKEN",), "x")


def test_every_step_can_be_undone() -> None:
    table = EditTable(DECLARED, Overrides())
    before = table.rows
    table.put("STEPS", "90")
    table.unset(row_of(table, "API_TOKEN"))
    table.put_args("--lr 1e-4")
    table.put_note("try it")
    table.revert()

    while table.undo():
        pass

    assert table.rows == before
    assert table.overrides(Overrides()) == Overrides()


def test_an_edit_that_is_opened_again_shows_what_was_changed() -> None:
    table = EditTable(DECLARED, Overrides(env={"STEPS": "90"}, unset=("API_TOKEN",)))

    assert {row.name: row.value for row in table.rows if row.kind is Kind.ENV} == {"STEPS": "90", "API_TOKEN": None}


def test_values_that_look_secret_are_masked() -> None:
    row = row_of(EditTable(DECLARED, Overrides()), "API_TOKEN")

    assert row.shown(row.value) == MASK


SECRET = ["HF_TOKEN", "WANDB_API_KEY", "DB_PASS", "PASS", "pgpassword", "MYSQL_PWD", "NETRC_AUTH", "COOKIE"]
PLAIN = ["PWD", "OLDPWD", "SSH_AUTH_SOCK", "XAUTHORITY", "GIT_ASKPASS", "BYPASS_CHECK", "TOKENIZERS_PARALLELISM"]


@pytest.mark.parametrize(("name", "secret"), [*((name, True) for name in SECRET), *((name, False) for name in PLAIN)])
def test_screen_and_host_agree_on_what_looks_secret(name: str, secret: bool) -> None:
    assert (is_secret(name), secretenv.is_secret(name)) == (secret, secret)


def test_names_that_no_shell_would_take_are_refused() -> None:
    assert bad_name("A_1") == ""
    assert bad_name("1A")
    assert bad_name("A=B")
    assert bad_name("A\n")


def test_arguments_are_words_as_a_shell_reads_them_and_the_note_is_text() -> None:
    table = EditTable(DECLARED, Overrides(args=("--seed", "7")))
    assert row_of(table, "arguments").value == "--seed 7"

    table.put_args("--name 'two words' --lr 1e-4")
    table.put_note("  is it the lr?  ")

    found = table.overrides(Overrides())
    assert (found.args, found.note) == (("--name", "two words", "--lr", "1e-4"), "is it the lr?")
    assert EditTable(DECLARED, found).rows == table.rows


def test_quotes_that_do_not_match_are_refused_before_they_are_taken() -> None:
    assert bad_args("--name 'two words'") == ""
    assert "quot" in bad_args("--name 'two words")


def test_unset_takes_arguments_and_note_away_and_revert_keeps_the_note() -> None:
    table = EditTable(DECLARED, Overrides(args=("--x",), note="why"))

    table.revert()
    assert (row_of(table, "arguments").value, row_of(table, "note").value) == (None, "why")
    table.unset(row_of(table, "note"))

    assert table.overrides(Overrides()) == Overrides()


def test_a_change_that_changes_nothing_is_no_step() -> None:
    table = EditTable(DECLARED, Overrides())

    table.put("STEPS", "60")
    table.put_note(" ")

    assert not table.can_undo
