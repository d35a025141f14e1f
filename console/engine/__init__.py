"""The engine: joins link and state for one target. Faces import from here and from nowhere below."""

from console.engine.core import Engine
from console.engine.requests import link_exit_code

__all__ = ["Engine", "link_exit_code"]
