"""The report that `y` copies: verdict, evidence, stages and the last lines of the log, as plain text. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from console.model import Snapshot
from console.ui.present import words
from console.ui.present.facts import elapsed_s, known_at
from console.ui.present.look import VERDICT_WORDS, Look, stage_glyph
from console.ui.present.verdict import verdict_facts


def report(snapshot: Snapshot, log_lines: Sequence[str], look: Look) -> str:
    """Return what a colleague needs to know, whatever the state is."""
    facts = verdict_facts(snapshot, look)
    head = f"{snapshot.target} {facts.name}: {VERDICT_WORDS[snapshot.verdict]}"
    rows = [f"{head}  ({words.clock(snapshot.at, look.zone)})"]
    for texts in (facts.first, (facts.cause,), facts.second):
        text = " · ".join(t for t in texts if t)
        if text:
            rows.append(text)
    if facts.safe:
        rows.append(f"safe: {facts.safe}")
    if facts.next:
        rows.append(f"next: {'; '.join(facts.next)}")
    if snapshot.reason is not None:
        rows += ["", f"why: {snapshot.reason.slug}"]
        rows += [f"  {words.one_line(f.label)}: {words.one_line(f.text)}" for f in snapshot.reason.facts]
    rows.append("")
    for stage in snapshot.stages:
        took = elapsed_s(stage, known_at(snapshot))
        time = f" {words.duration(took)}" if took is not None else ""
        evidence = words.one_line(stage.detail or stage.evidence or stage.why)
        rows.append(f"  {stage_glyph(stage.state, look.glyphs)} {stage.stage.label}{time}  {evidence}".rstrip())
    if log_lines:
        rows += ["", f"last lines of {snapshot.log.path or 'the log'}:", *(f"  {line}" for line in log_lines)]
    return "\n".join(rows) + "\n"


def pane_title(snapshot: Snapshot, look: Look) -> str:
    """`✗ ct200 slammed6 FAILED spawned`: the title of the terminal's pane."""
    facts = verdict_facts(snapshot, look)
    parts = [facts.glyph, snapshot.target]
    if snapshot.run is not None:
        parts.append(facts.name)
    parts.append(facts.word)
    failed = next((s for s in snapshot.stages if s.state.value == "failed"), None)
    if snapshot.verdict.value == "failed" and failed is not None:
        parts.append(failed.stage.value)
    return " ".join(parts)
