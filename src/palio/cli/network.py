"""The network on the command line: a broker as a process, a local cluster of them, the map."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palio.cli.application import _announce_compiling, app
from palio.cli.connecting import (
    URL,
    Authority,
    Certificate,
    Key,
    Token,
    Url,
    Wait,
    Way,
    run,
    say,
)
from palio.errors import PalioError

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
        bool, typer.Option("--check", help="Only check the configuration, and say what is odd.")
    ] = False,
    log: Annotated[str, typer.Option(help="Lines for people or for machines: human, json.")] = (
        "human"
    ),
    level: Annotated[str, typer.Option(help=f"Least level: {', '.join(_LEVELS)}.")] = "info",
    until_eof: Annotated[
        bool, typer.Option("--until-eof", help="Stop when standard input ends, too.")
    ] = False,
) -> None:
    """Run a broker until SIGTERM; SIGHUP reads identities and grants again.

    `palio broker --init > broker.toml` makes a configuration to begin with.
    """
    from palio.net import config as configuration
    from palio.net import logs

    if init:
        print(configuration.example(), end="")
        return
    if config is None:
        raise PalioError(
            "palio broker takes --config FILE; `palio broker --init > broker.toml` makes one"
        )
    if log not in logs.FORMS:
        raise PalioError(f"--log is {' or '.join(logs.FORMS)}, not {log!r}")
    if level not in _LEVELS:
        raise PalioError(f"--level is one of {', '.join(_LEVELS)}, not {level!r}")
    settings = configuration.read(config)
    if check:
        for warning in settings.warnings():
            print(warning)
        print(f"{config}: broker {settings.name} on {settings.listen}")
        return
    from palio.net import kernels, server
    from palio.net.broker import hosted

    logs.start(log, getattr(logging, level.upper()))
    kernels.prepare()
    server.run(settings, hosted, until_eof=until_eof)


# ---- the map


@app.command()
def topology(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a broker.")] = False,
    url: Url = URL,
    token: Token = None,
    authority: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    wait: Wait = 0.0,
) -> None:
    """Draw the network as a broker sees it. The broker has a star; a question mark: unreachable."""
    from palio.net import picture

    way = Way(url, token, authority, certificate, key, wait)

    async def show() -> None:
        async with way.client() as client:
            places, here = await client.topology(), client.broker
        if not as_json:
            print(picture.draw(places, here))
            return
        for place in places:
            row = {
                "broker": place.broker,
                "links": dict(place.links),
                "filters": place.subscriptions,
                "durable": place.durable,
                "reachable": place.reachable,
            }
            print(json.dumps(row, ensure_ascii=False))

    run(show())


@app.command()
def forget(
    broker: Annotated[str, typer.Argument(help="The name of a broker that is away.")],
    url: Url = URL,
    token: Token = None,
    authority: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    wait: Wait = 0.0,
) -> None:
    """Say that a broker is gone for good: nothing waits for its subscriptions any more."""
    way = Way(url, token, authority, certificate, key, wait)

    async def say() -> None:
        async with way.client() as client:
            await client.forget(broker)
        print(f"{broker} is forgotten: its durable subscriptions have ended")

    run(say())


@app.command()
def explain(
    message: Annotated[str, typer.Argument(help="The attributes, as a JSON object.")],
    subscription: Annotated[
        str, typer.Option(help="Why does it reach this one, or not? A durable name.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a hop.")] = False,
    url: Url = URL,
    token: Token = None,
    authority: Authority = None,
    certificate: Certificate = None,
    key: Key = None,
    wait: Wait = 0.0,
) -> None:
    """Tell where a message would go if it were published at this broker, hop by hop, and why."""
    from palio.model.message import Message
    from palio.net import explanations

    way = Way(url, token, authority, certificate, key, wait)
    found = Message.from_json(message)

    async def ask() -> None:
        async with way.client() as client:
            explained = await client.explain(found, subscription)
        if not as_json:
            print("\n".join(explanations.lines(explained, subscription)))
            return
        for hop in explained.hops:
            row = {"broker": hop.broker, "came_from": hop.came_from}
            print(json.dumps({**row, "delivers": dict(hop.delivers), "sends": dict(hop.sends)}))

    run(ask())


# ---- a cluster


@cluster.command("up")
def cluster_up(
    brokers: Annotated[int, typer.Option(min=1, max=50, help="How many.")] = 5,
    topology: Annotated[str, typer.Option(help="ring, line, star, tree or mesh.")] = "ring",
    chords: Annotated[int, typer.Option(min=0, help="So many more links across it.")] = 0,
    routing: Annotated[
        str, typer.Option(help="PSF, iPS, PIF, DRP; forwarding on a line, star or tree.")
    ] = "PSF",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Of the first broker; 0: free ones.")
    ] = 7400,
    data: Annotated[
        Path | None, typer.Option(help="A folder that stays; else a temporary one.")
    ] = None,
    tls: Annotated[bool, typer.Option("--tls", help="With certificates made for it.")] = False,
) -> None:
    """Start a network of brokers on this machine, and stop it with Ctrl-C."""
    from palio.matching import warmup
    from palio.net.cluster import local_cluster

    made = local_cluster(
        brokers, topology, chords=chords, routing=routing, port=port, data=data, tls=tls
    )
    if warmup.waiting() is not None:
        _announce_compiling()

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
