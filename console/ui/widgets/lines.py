"""A widget that shows a frozen view: rows of spans. A new view repaints the rows that differ and nothing else."""

from __future__ import annotations

from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from console.ui.present.look import to_ascii
from console.ui.present.spans import Line, Role, View

ROLE_CLASSES: Final = frozenset(f"role--{role}" for role in Role)
"""The app's component classes. A role has one colour wherever it stands: had each widget classes of its own, matching
them all against the stylesheet would take a fifth of the first picture."""


class RoleStyles(Widget):
    """Turns roles into styles by the app's component classes, so that every colour is a theme variable."""

    ascii_only = reactive(False)
    _base_style: Style | None = None
    _role_styles: dict[tuple[Role, bool], Style] | None = None

    @property
    def base_style(self) -> Style:
        """The widget's own style. Textual puts `rich_style` together from all ancestors each time it is asked for."""
        if self._base_style is None:
            self._base_style = self.rich_style
        return self._base_style

    def style_of(self, role: Role, bold: bool) -> Style:
        if self._role_styles is None:
            self._role_styles = {}
        style = self._role_styles.get((role, bold))
        if style is None:
            # Only what the role sets: the ground is the widget's own, which changes with the verdict.
            style = self.base_style + self.app.get_component_styles(f"role--{role}").partial_rich_style
            style = style + Style(bold=True) if bold else style
            self._role_styles[role, bold] = style
        return style

    def notify_style_update(self) -> None:
        self._base_style = self._role_styles = None
        super().notify_style_update()

    def strip_of(self, line: Line, width: int) -> Strip:
        """Render a line to exactly `width` cells."""
        base = self.base_style
        segments = []
        for span in line:
            text = to_ascii(span.text) if self.ascii_only else span.text
            segments.append(Segment(text, self.style_of(span.role, span.bold)))
        return Strip(segments).adjust_cell_length(width, base)


class LinesView(RoleStyles):
    """Shows what a presentation function returned."""

    view: reactive[View] = reactive((), repaint=False, always_update=False)

    def watch_view(self, old: View, new: View) -> None:
        if len(old) != len(new):
            self.refresh()
            return
        width = self.size.width
        changed = [Region(0, y, width, 1) for y, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
        if changed:
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        view = self.view
        return self.strip_of(view[y] if y < len(view) else (), self.size.width)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.view)
