"""The engine: joins link and state for one target. Faces import from here and from nowhere below."""

from console.engine.core import Engine

__all__ = ["Engine"]
