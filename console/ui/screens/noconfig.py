"""What stands there without a config: how to get going."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from console.ui.present.frame import footer
from console.ui.present.spans import BLANK, Line, Span, dim, faint, strong
from console.ui.widgets.lines import LinesView

if TYPE_CHECKING:
    from console.ui.app import ConsoleApp

_EXAMPLE = (
    "[targets.ct200]",
    'host = "10.1.2.6"                 # or a Host of your ssh config',
    'user = "root"',
    'exec = ["pct", "exec", "200", "--"]',
    'command = ["/root/run.sh"]',
    'log = "/workspace/train_{name}.log"',
    'match = ["train_dflash_pipeline.py"]',
)


class NoConfig(Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "demo", "demo", id="noconfig.demo", show=False),
        Binding("q", "app.quit", "quit", id="noconfig.quit", show=False),
    ]

    def __init__(self, config_path: str) -> None:
        super().__init__()
        self._config_path = config_path

    def compose(self) -> ComposeResult:
        yield LinesView(id="page")
        yield LinesView(id="footer")

    def on_mount(self) -> None:
        rows: list[Line] = [BLANK, (strong("  No config yet."),)]
        if self._config_path:
            rows.append((Span("  One target is enough, in "), dim(self._config_path), Span(":")))
        rows.append(BLANK)
        rows += [(faint(f"    {line}"),) for line in _EXAMPLE]
        rows += [BLANK, (strong("  d"), Span("  see the demo: a training host inside this process, without GPUs"))]
        rows.append((strong("  q"), Span("  quit")))
        self.query_one("#page", LinesView).view = tuple(rows)
        for view in self.query(LinesView):
            view.ascii_only = cast("ConsoleApp", self.app).ascii_only
        self.on_resize()

    def on_resize(self) -> None:
        foot = footer([("d", "demo")], [("q", "quit")], self.size.width)
        self.query_one("#footer", LinesView).view = (foot,)

    def action_demo(self) -> None:
        self.app.exit("demo")
