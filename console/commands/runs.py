"""Commands that change what runs, or wait for it: restart, stop, wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from console.commands.options import Wanted, called, choose, json_option, target_options, timeout_option

if TYPE_CHECKING:
    from console.model import Overrides


def _overrides(env: tuple[str, ...], unset: tuple[str, ...], args: tuple[str, ...], **rest: Any) -> Overrides:
    from console.model import Overrides

    pairs = {}
    for pair in env:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise click.UsageError(f"--env {pair!r}: expected NAME=VALUE")
        pairs[key] = value
    for text in (*pairs, *pairs.values(), *unset, *args, rest["name"] or "", rest["note"]):
        if text.encode(errors="ignore").decode() != text:
            raise click.UsageError(f"{text!r} is not valid UTF-8")
    name = rest["name"]
    if name is not None and (not name or "/" in name or name in (".", "..")):
        raise click.UsageError(f"--name {name!r}: expected a name without '/'")
    return Overrides(env=pairs, unset=unset, args=args, **rest)


@click.command()
@click.argument("target", required=False)
@target_options
@click.option("--plan", "plan_only", is_flag=True, help="Print the plan; touch nothing.")
@click.option("--plan-id", help="Carry out the plan with this id, only if the world still is as planned.")
@click.option("--yes", is_flag=True, help="Confirm without asking.")
@click.option(
    "--expect-run",
    metavar="RUN",
    help="Refuse (code 4) if any other run than RUN is there; replaces RUN also where it has not stepped yet.",
)
@click.option("--detach", is_flag=True, help="Return when the keeper has taken the request.")
@click.option("--wait", "wait_for", type=Wanted(), help="Return when this is proven (default stepping).")
@timeout_option
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="Add to the environment, for this run.")
@click.option("--unset", multiple=True, metavar="NAME", help="Take out of the environment, for this run.")
@click.option("--arg", "args", multiple=True, help="Add an argument to the command, for this run.")
@click.option("--from", "from_run", metavar="RUN", help="Take command, directory and environment from this past run.")
@click.option("--name", help="Name of the run instead of the template's.")
@click.option("--note", default="", help="A note that is kept with the run.")
@click.option("--keep-cache", is_flag=True, help="Do not clear the cache.")
@json_option
def restart(target: str | None, **options: Any) -> int:
    """Replace what runs on TARGET by a new run, and prove that it runs.

    A launch that has not stepped yet is left alone (code 4): wait for it, or name it with --expect-run.
    """
    from console.headless import restart as work

    name, chosen = choose(target, options)
    keys = ("env", "unset", "args", "name", "note", "keep_cache")
    overrides = _overrides(**{key: options.pop(key) for key in keys})
    return work.run(name, chosen, overrides=overrides, way=called().way, **options)


@click.command()
@click.argument("run", required=False)
@click.option("--target", help="Target of the run, where it isn't known from its id.")
@target_options
@click.option("--for", "wanted", type=Wanted(), default="stepping", show_default=True, help="What to wait for.")
@timeout_option
@json_option
def wait(run: str | None, target: str | None, **options: Any) -> int:
    """Wait until RUN (an id, a name, or the current one) has reached a stage."""
    from console.headless import store
    from console.headless import wait as work

    target = target or (store.target_of_run(run) if run and options["host"] is None else None)
    name, chosen = choose(target, options)
    return work.run(name, chosen, which=run, **options)


@click.command()
@click.argument("target", required=False)
@target_options
@click.option("--plan", "plan_only", is_flag=True, help="Print what would be stopped; touch nothing.")
@click.option("--plan-id", help="Carry out the plan with this id, only if the world still is as planned.")
@click.option("--yes", is_flag=True, help="Confirm without asking.")
@click.option("--expect-run", metavar="RUN", help="Refuse (code 4) if any other run than RUN is there.")
@click.option("--detach", is_flag=True, help="Return when the request is taken.")
@timeout_option
@json_option
def stop(target: str | None, **options: Any) -> int:
    """Stop what runs on TARGET, and prove that it is gone."""
    from console.headless import stop as work

    name, chosen = choose(target, options)
    return work.run(name, chosen, way=called().way, **options)
