"""How a command reaches a broker: the connection options, declared once for all commands.

A command that takes `connection: ConnectionOptions` and has the decorator `with_connection` gets
the options --url, --token, --authority, --certificate, --key and --wait in that place:

    @app.command()
    @with_connection
    def topology(connection: ConnectionOptions) -> None: ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from palio.errors import PalioError

if TYPE_CHECKING:
    from palio.net.client import Client


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """Where the broker is, who the client is, and whom it trusts. The fields are the options."""

    url: Annotated[
        str,
        typer.Option(
            envvar="PALIO_URL", help="The broker, palio://host:port,...; palios:// with TLS."
        ),
    ] = "palio://127.0.0.1:7400"
    token: Annotated[
        str | None,
        typer.Option(
            envvar="PALIO_TOKEN", help="Who you are; better in the variable.", show_envvar=True
        ),
    ] = None
    authority: Annotated[
        Path | None,
        typer.Option(envvar="PALIO_AUTHORITY", help="With TLS: whom to trust, a PEM file."),
    ] = None
    certificate: Annotated[
        Path | None, typer.Option(help="With TLS: your own certificate, PEM.")
    ] = None
    key: Annotated[Path | None, typer.Option(help="Its key, PEM.")] = None
    wait: Annotated[float, typer.Option(help="Seconds to keep trying when no broker answers.")] = (
        0.0
    )

    def client(self, name: str | None = None) -> Client:
        """A client that is not connected yet; `name` continues the numbers of a publisher."""
        from palio.net.client import connect

        if (self.certificate is None) != (self.key is None):
            raise PalioError("--certificate and --key belong together: give both, or none")
        pair = (
            None
            if self.certificate is None or self.key is None
            else (str(self.certificate), str(self.key))
        )
        return connect(
            self.url,
            token=self.token,
            name=name,
            tls=self.authority,
            certificate=pair,
            wait=self.wait,
        )


def with_connection(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the six options in the place of its parameter `connection`.

    Typer reads a command's options from its signature and its annotations, so both are replaced.
    """
    options = inspect.signature(ConnectionOptions).parameters
    hints = {
        **get_type_hints(command, include_extras=True),
        **get_type_hints(ConnectionOptions, include_extras=True),
    }
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        parameters += options.values() if name == "connection" else [parameter]

    def connected(**given: Any) -> None:
        chosen = {name: given.pop(name) for name in options}
        command(connection=ConnectionOptions(**chosen), **given)

    typed = [
        p.replace(annotation=hints[p.name], kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters
    ]
    connected.__name__, connected.__doc__ = command.__name__, command.__doc__
    connected.__module__ = command.__module__
    connected.__annotations__ = {p.name: hints[p.name] for p in parameters}
    connected.__signature__ = inspect.Signature(typed)  # type: ignore[attr-defined]
    return connected
