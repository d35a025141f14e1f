"""What this process's tasks are at."""

from __future__ import annotations

import asyncio
from collections import Counter


def every_agent_answers() -> bool:
    """Whether none is just being started: what it says on stderr is read from its start, its channel from its hello."""
    running = Counter(getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks())
    return running["AgentChannel.run"] == running["Tail.drain"] > 0
