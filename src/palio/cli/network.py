"""The network on the command line: a broker as a process, a local cluster of them, the map."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palio.cli.application import LEASE_LOST, app
from palio.cli.connection import ConnectionOptions, with_connection
from palio.cli.feedback import announce_compiling, say
from palio.cli.running import run
from palio.errors import PalioError
from palio.printable import printable, printable_lines

if TYPE_CHECKING:
    from palio.net.cluster import Cluster

cluster = typer.Typer(help="A network of brokers on this machine.", no_args_is_help=True)
app.add_typer(cluster, name="cluster")

_LEVELS = ("debug", "info", "warning", "error")


@app.command()
def broker(
    config: Annotated[Path | None, typer.Option(help="The configuration, a TOML file.")] = None,
    init: Annotated[bool, typer.Option("--init", help="Print an example configuration.")] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only check whether it would start, and say what is odd."),
    ] = False,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Save what can be read of damaged data, and say what is lost."
        ),
    ] = False,
    log: Annotated[str, typer.Option(help="Lines for people or for machines: human, json.")] = (
        "human"
    ),
    level: Annotated[str, typer.Option(help=f"Least level: {', '.join(_LEVELS)}.")] = "info",
    until_eof: Annotated[
        bool, typer.Option("--until-eof", help="Stop when standard input ends, too.")
    ] = False,
) -> None:
    """Run a broker until SIGTERM; SIGHUP reads identities, grants and schemas again.

    `palio broker --init > broker.toml` makes a configuration to begin with.
    """
    from palio.net import config as configuration
    from palio.net.monitoring import logs

    if init:
        print(configuration.example(), end="")
        return
    if config is None:
        raise PalioError(
            "palio broker takes --config FILE",
            remedy="`palio broker --init > broker.toml` makes one",
        )
    if log not in logs.FORMS:
        raise PalioError(f"--log is {' or '.join(logs.FORMS)}, not {log!r}")
    if level not in _LEVELS:
        raise PalioError(f"--level is one of {', '.join(_LEVELS)}, not {level!r}")
    settings = configuration.read(config)
    from palio.net.broker import kernels, preflight, server

    if check:
        for warning in preflight.check(settings):
            print(warning)
        print(f"{config}: broker {settings.name} on {settings.listen}")
        return
    if repair:
        for line in preflight.repair(settings):
            print(line)
        return
    from palio.net.storage.store import LeaseLost

    logs.start(log, getattr(logging, level.upper()))
    kernels.prepare()
    if settings.mqtt is not None:
        kernels.prepare_mqtt()
    try:
        server.run(settings, until_eof=until_eof)
    except LeaseLost as error:
        say(f"palio: {error}")
        raise typer.Exit(LEASE_LOST) from None


Configuration = Annotated[Path, typer.Option("--config", help="The configuration of the broker.")]


@app.command()
def backup(
    config: Configuration,
    to: Annotated[Path, typer.Option(help="A new file.")],
) -> None:
    """Write all that a broker stores into one file. The broker may run meanwhile."""
    from palio.net import config as configuration
    from palio.net.storage.backups import back_up

    count = back_up(configuration.read(config), to)
    print(f"{to}: {count:,} entries, {to.stat().st_size:,} bytes")


@app.command()
def restore(
    config: Configuration,
    source: Annotated[Path, typer.Option("--from", help="A file of `palio backup`.")],
    force: Annotated[
        bool, typer.Option("--force", help="In the place of what the store holds.")
    ] = False,
) -> None:
    """Fill the store of a broker that does not run from a backup."""
    from palio.net import config as configuration
    from palio.net.storage import backups

    settings = configuration.read(config)
    count = backups.restore(settings, source, force=force)
    print(f"{settings.name}: {count:,} entries restored from {source}")


# ---- the map


@app.command()
@with_connection
def topology(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a broker.")] = False,
    memory: Annotated[
        bool,
        typer.Option("--memory", help="What each broker holds to route, beside the formula."),
    ] = False,
    *,
    connection: ConnectionOptions,
) -> None:
    """Draw the network as a broker sees it. The broker has a star, a master ^; a question mark: unreachable."""
    from palio.net import picture

    async def show() -> None:
        async with connection.client() as client:
            places, here = await client.topology(memory=memory), client.broker
        if not as_json:
            drawn = picture.memory_table if memory else picture.draw
            print(printable_lines(drawn(places, here)))
            return
        for place in places:
            row: dict[str, object] = {
                "broker": place.broker,
                "links": dict(place.links),
                "filters": place.subscriptions,
                "durable": place.durable,
                "reachable": place.reachable,
                "master": place.master or None,
            }
            if memory and place.memory is not None:
                row["memory"] = {
                    name: getattr(place.memory, name) for name in place.memory.__struct_fields__
                }
            print(json.dumps(row, ensure_ascii=False))

    run(show())


@app.command()
@with_connection
def forget(
    broker: Annotated[str, typer.Argument(help="The name of a broker that is away.")],
    *,
    connection: ConnectionOptions,
) -> None:
    """Say that a broker is gone for good: nothing waits for its subscriptions any more."""

    async def ask() -> None:
        async with connection.client() as client:
            await client.forget(broker)
        print(f"{broker} is forgotten: its durable subscriptions have ended")

    run(ask())


@app.command()
@with_connection
def explain(
    message: Annotated[str, typer.Argument(help="The attributes, as a JSON object.")],
    subscription: Annotated[
        str, typer.Option(help="Why does it reach this one, or not? A durable name.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a hop.")] = False,
    *,
    connection: ConnectionOptions,
) -> None:
    """Tell where a message would go if it were published at this broker, hop by hop, and why."""
    from palio.model.message import Message
    from palio.net import explanations

    attributes = Message.from_json(message)

    async def ask() -> None:
        async with connection.client() as client:
            explained = await client.explain(attributes, subscription)
        if not as_json:
            print("\n".join(map(printable, explanations.lines(explained, subscription))))
            return
        for hop in explained.hops:
            row = {"broker": hop.broker, "came_from": hop.came_from}
            print(json.dumps({**row, "delivers": dict(hop.delivers), "sends": dict(hop.sends)}))

    run(ask())


# ---- a cluster


@cluster.command("up")
def cluster_up(
    brokers: Annotated[int, typer.Option(min=1, max=50, help="How many.")] = 5,
    topology: Annotated[
        str, typer.Option(help="ring, line, star, tree, mesh or hierarchy.")
    ] = "ring",
    chords: Annotated[int, typer.Option(min=0, help="So many more links across it.")] = 0,
    routing: Annotated[str, typer.Option(help="PSF, iPS, PIF, DRP or forwarding.")] = "iPS",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Of the first broker; 0: free ones.")
    ] = 7400,
    data: Annotated[
        Path | None, typer.Option(help="A folder that stays; else a temporary one.")
    ] = None,
    tls: Annotated[bool, typer.Option("--tls", help="With certificates made for it.")] = False,
) -> None:
    """Start a network of brokers on this machine, and stop it with Ctrl-C."""
    from palio.net.cluster import local_cluster

    made = local_cluster(
        brokers, topology, chords=chords, routing=routing, port=port, data=data, tls=tls
    )
    announce_compiling()

    async def stay() -> None:
        say(f"palio: starting {brokers} brokers")
        async with made:
            await _introduce(made)
            await made.watched()

    run(stay())


async def _introduce(made: Cluster) -> None:
    from palio.net import picture

    print(picture.draw(await made.agreed()), "\n")
    for name, url in zip(made.names, made.urls, strict=True):
        print(f"{name:4} {url}")
    trust = f" --authority {made.authority}" if made.authority else ""
    print(
        f"\nlogs and disks: {made.folder}\n\n"
        f"try, in other terminals:\n"
        f'  palio subscribe "price < 500" --url {made.urls[0]}{trust}\n'
        f"  palio publish price=450 dest=MXP --url {made.urls[-1]}{trust}\n"
        f"  palio explain '{{\"price\": 450}}' --url {made.urls[-1]}{trust}\n"
        f"  palio topology --url {made.urls[0]}{trust}\n"
        f"Ctrl-C stops the brokers",
        flush=True,
    )
