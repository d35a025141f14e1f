"""What differs between two runs, and what past launches say, as the snapshot tells them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from console.model import Change, PastRun, Script, Settings, Stage, Verdict
from console.protocol import ExitRecord
from console.reasons import Reason
from console.state import events
from console.state.changes import HIDDEN, changes
from console.state.snapshot import snapshot
from tests.state.story import Story, done

RUN_SH, TRAIN = "/root/run.sh", "/root/train.py"
SETTINGS = Settings(
    argv=(RUN_SH, "--gpus", "8"),
    cwd="/root",
    env={"SPLIT": "0", "API_KEY": "hmac:51c0"},
    scripts={RUN_SH: Script(sha256="9c02", mode=0o755), TRAIN: Script(sha256="a31f", mode=0o644)},
)
GOOD = PastRun(id="r-5", name="slammed5", settings=SETTINGS, stepped=True)


def changed(**fields: Any) -> tuple[Change, ...]:
    now = {name: getattr(SETTINGS, name) for name in SETTINGS.__struct_fields__} | fields
    return changes(GOOD, Settings(**now)).items


# -- the comparison ---------------------------------------------------------------------------------------------------


def test_equal_settings_differ_in_nothing_and_say_in_what_they_agree() -> None:
    found = changes(GOOD, SETTINGS)

    assert found.items == ()
    assert found.same == ("run.sh", "train.py", "argv", "cwd", "2 env names")


def test_value_that_came_or_went_is_told_as_such() -> None:
    assert changed(env={"SPLIT": "1", "NEW": "x", "API_KEY": "hmac:51c0"}) == (
        Change(kind="env", what="NEW", then=None, now="x"),
        Change(kind="env", what="SPLIT", then="0", now="1"),
    )


def test_secret_that_changed_is_told_and_not_shown() -> None:
    assert changed(env={"SPLIT": "0", "API_KEY": "hmac:77aa"}) == (
        Change(kind="env", what="API_KEY", then=HIDDEN, now=HIDDEN),
    )


def test_name_that_only_one_run_took_from_the_login_is_a_change() -> None:
    assert changed(unset=("LD_PRELOAD",)) == (Change(kind="env", what="LD_PRELOAD", then="the login's", now=None),)


def test_command_and_directory_are_told_as_they_would_be_typed() -> None:
    assert changed(argv=(RUN_SH, "--note", "two words"), cwd="/tmp") == (
        Change(kind="argv", then="/root/run.sh --gpus 8", now="/root/run.sh --note 'two words'"),
        Change(kind="cwd", then="/root", now="/tmp"),
    )


def test_mode_and_content_of_a_script_are_two_changes() -> None:
    scripts = {RUN_SH: Script(sha256="ffff", mode=0o644, mtime=5.0), TRAIN: SETTINGS.scripts[TRAIN]}

    assert changed(scripts=scripts) == (
        Change(kind="file", what=RUN_SH, then="9c02", now="ffff", edited_at=5.0),
        Change(kind="file", what=RUN_SH, then="mode 0755", now="0644"),
    )


def test_script_that_one_of_them_did_not_look_at_proves_nothing() -> None:
    assert changed(scripts={RUN_SH: SETTINGS.scripts[RUN_SH]}) == ()
    assert changed(scripts={}) == ()


_TEXT = st.text(alphabet="ab :'", max_size=4)
_SETTINGS = st.builds(
    Settings,
    argv=st.lists(_TEXT, max_size=3).map(tuple),
    cwd=_TEXT,
    env=st.dictionaries(st.sampled_from("ABC"), st.sampled_from(["0", "1", "hmac:1", "hmac:2"])),
    unset=st.lists(st.sampled_from("CDE"), unique=True).map(tuple),
    scripts=st.dictionaries(
        st.sampled_from([RUN_SH, TRAIN]),
        st.builds(Script, sha256=st.sampled_from(["9c02", "a31f"]), mode=st.sampled_from([0o644, 0o755])),
    ),
)


@given(then=_SETTINGS, now=_SETTINGS)
def test_comparison_looks_the_same_from_both_sides_and_shows_no_hash_of_a_secret(then: Settings, now: Settings) -> None:
    forth = changes(PastRun(id="a", name="a", settings=then), now)
    back = changes(PastRun(id="b", name="b", settings=now), then)

    assert [(each.kind, each.what) for each in forth.items] == [(each.kind, each.what) for each in back.items]
    assert forth.same == back.same
    assert not [each for each in forth.items if "hmac:" in f"{each.then} {each.now}" and each.kind == "env"]
    assert changes(PastRun(id="a", name="a", settings=now), now).items == ()


# -- in the snapshot --------------------------------------------------------------------------------------------------


def failing(**record: Any) -> Story:
    """A story that has come to a launch which failed, with a good run before it."""
    story = Story().up()
    story.tell(events.HistoryKnown(at=story.at, good=GOOD, usual_s={Stage.CUDA: 112.0}, launches=5))
    stages = {"killing": done(story.bt, 12.0, "2 pids"), "spawned": done(story.bt + 12, 0.8, "pid 1")}
    end = ExitRecord(code=1, ended_bt=story.bt + 14, lived_s=1.2, all_gone=True)
    return story.host(state="ended", stages=stages, exit=end, alive=False, **record)


def test_failed_run_is_compared_with_the_last_good_one() -> None:
    story = failing(argv=SETTINGS.argv, cwd="/root", env={**SETTINGS.env, "SPLIT": "1"}, scripts=SETTINGS.scripts)

    seen = snapshot(story.state, story.at)

    assert seen.verdict is Verdict.FAILED
    assert seen.changes is not None
    assert seen.changes.since == "slammed5"
    assert seen.changes.items == (Change(kind="env", what="SPLIT", then="0", now="1"),)
    assert seen.reason is not None
    assert seen.reason.next[-1] == "slammed5's settings again (o)"


def test_run_that_is_well_is_compared_with_nothing() -> None:
    story = Story().up()
    story.tell(events.HistoryKnown(at=story.at, good=GOOD)).host(state="killing")

    seen = snapshot(story.state, story.at)

    assert seen.verdict is Verdict.LAUNCHING
    assert seen.changes is None
    assert seen.good == GOOD


def test_run_is_never_compared_with_itself() -> None:
    story = failing(id="r-5")

    seen = snapshot(story.state, story.at)

    assert (seen.good, seen.changes) == (None, None)
    assert seen.reason is not None
    assert not [step for step in seen.reason.next if "(o)" in step]


def test_console_that_only_watches_is_not_advised_to_restart_with_old_settings() -> None:
    story = failing()

    seen = snapshot(replace(story.state, read_only=True), story.at)

    assert seen.reason is not None
    assert not [step for step in seen.reason.next if "(o)" in step]


def test_history_gives_usual_times_and_leaves_the_baseline() -> None:
    story = Story().up()

    story.tell(events.HistoryKnown(at=story.at, usual_s={Stage.CUDA: 112.0}, longest_s={Stage.CUDA: 160.0}, launches=5))
    story.host(state="killing")
    seen = snapshot(story.state, story.at)

    assert (seen.stages[3].usual_s, seen.stages[3].longest_s, seen.usual_launches) == (112.0, 160.0, 5)
    assert seen.stages[4].usual_s is None
    assert seen.progress.rate.baseline == 14_500


def test_trouble_of_the_console_itself_is_a_warning_and_no_word_of_the_host() -> None:
    story = Story().up()
    heard_at = story.state.link.last_word_at

    story.after(30.0).tell(events.ConsoleWarned(at=story.at, reason="ledger_unusable", detail="read-only"))
    story.tell(events.ConsoleWarned(at=story.at, reason="ledger_unusable", detail="read-only"))
    seen = snapshot(story.state, story.at)

    assert [(each.slug, each.detail) for each in seen.warnings] == [(Reason.LEDGER_UNUSABLE, "read-only")]
    assert seen.link.last_word_at == heard_at
