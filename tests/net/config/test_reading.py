"""broker.toml: every mistake is a sentence with the file, the key and the remedy."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest

import palio
from palio.net import config as configuration
from palio.net.config import Config, InvalidConfig, PostgresSettings, example, read
from palio.net.endpoint import Endpoint
from palio.protocol.broker.settings import ConnectionBounds, WaitingBounds
from palio.protocol.durability.queues import Full

HASH = hashlib.sha256(b"token").hexdigest()
LOCAL = '[broker]\nname = "milan"\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "broker.toml"
    path.write_text(text)
    return path


def from_text(folder: Path, text: str) -> Config:
    return read(written(folder, text))


def uncommented(text: str) -> str:
    """The example with everything in it: comments that hold a key or a section become that."""
    lines = []
    for line in text.splitlines():
        bare = line.removeprefix("# ")
        is_example = line.startswith("# ") and (bare.startswith("[") or " = " in bare)
        lines.append(bare if is_example and not bare.startswith("Paths") else line)
    return "\n".join(lines)


def test_the_example_can_be_read(tmp_path: Path) -> None:
    config = from_text(tmp_path, example())
    assert (config.name, config.listen) == ("milan", Endpoint("127.0.0.1", 7400))
    assert list(config.warnings()) == []


def test_the_example_holds_every_key_with_its_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PALIO_SECRET", "x" * 32)
    for name in ("milan.pem", "milan.key", "authority.pem"):
        (tmp_path / name).write_text("")
    (tmp_path / "rome.secret").write_text("y" * 32 + "\n")
    (tmp_path / "order.schema.json").write_text("{}")
    text = uncommented(example())
    whole = from_text(tmp_path, text.replace('token_sha256 = "..."', f'token_sha256 = "{HASH}"'))
    usual = from_text(tmp_path, LOCAL)
    assert configuration.changes_that_wait(usual, whole) == [
        "neighbours",
        "tls",
        "metrics",
        "storage",
        "mqtt",
        "http",
        "sinks",
        "address",
    ]
    assert whole.settings.access.anonymous == usual.settings.access.anonymous
    assert whole.settings.neighbours["rome"].secret == b"y" * 32
    assert list(whole.settings.schemas) == ["orders"]
    asked = known_keys(tmp_path)
    shown = {
        (section.split(".")[0], key)
        for section, values in flattened(tomllib.loads(text))
        for key in values
    }
    assert asked - shown == {
        ("broker", "secret"), ("broker", "secret_file"),
        ("neighbours", "secret"), ("neighbours", "secret_env"),
    }  # fmt: skip


def flattened(values: dict[str, object], place: str = "") -> list[tuple[str, list[str]]]:
    found = [(place, [key for key, value in values.items() if not isinstance(value, dict)])]
    for key, value in values.items():
        if isinstance(value, dict):
            found += flattened(value, f"{place}.{key}" if place else key)
    return found


def known_keys(folder: Path) -> set[tuple[str, str]]:
    """The keys that sections are asked for."""
    from palio.net.config.sections import Section

    asked = set()
    has = Section.has

    def noted(self: Section, key: str) -> bool:
        place = self._place.strip("[]").split(".")[0]
        if place and not isinstance(self._values.get(key), dict):
            asked.add((place, key))
        return has(self, key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Section, "has", noted)
        patch.setenv("PALIO_SECRET", "x" * 32)
        text = uncommented(example())
        from_text(folder, text.replace('token_sha256 = "..."', f'token_sha256 = "{HASH}"'))
    return asked


def test_values_mean_what_they_say(tmp_path: Path) -> None:
    config = from_text(
        tmp_path,
        f"""
        [broker]
        name = "milan"
        listen = "[::1]:0"
        data = "../elsewhere"
        routing = "DRP"
        secret = "0123456789abcdef"
        [neighbours.rome]
        address = "rome.example.org:7401"
        weight = 2
        [neighbours.turin]
        [neighbours.bari]
        address = ["10.0.0.2:7400", "10.0.0.3:7400"]
        [storage]
        url = "postgresql://palio:secret@db/palio"
        lease_s = 2
        [identities.ann]
        token_sha256 = "{HASH}"
        subscribe = "desk = 7"
        admin = true
        [limits]
        predicates = "1 MiB"
        advertisements = 7
        watches = 9
        body = "1.5 MiB"
        header = "128 KiB"
        connections = 100
        strangers = 7
        waiting_bytes = "8 MiB"
        waiting_identity = "9 MiB"
        waiting_total = "10 MiB"
        held = "11 MiB"
        held_total = "12 MiB"
        watch = "13 MiB"
        watches_total = "14 MiB"
        unfinished = "32 MiB"
        unsent = "65 MiB"
        [times]
        keepalive = 0.5
        handshake = "3 s"
        frame = 7
        dial = "2 min"
        [queues]
        full = "drop"
        [log]
        keep = "2 d"
        """,
    )
    assert config.listen == Endpoint("::1", 0)
    assert config.data == tmp_path / ".." / "elsewhere"
    assert config.neighbours["rome"].endpoints == (Endpoint("rome.example.org", 7401),)
    assert config.neighbours["turin"].endpoints == ()
    bari = (Endpoint("10.0.0.2", 7400), Endpoint("10.0.0.3", 7400))
    assert config.neighbours["bari"].endpoints == bari
    assert config.storage == PostgresSettings("postgresql://palio:secret@db/palio", 2.0)
    assert "secret" not in repr(config.storage)
    settings = config.settings
    assert {name: n.weight for name, n in settings.neighbours.items()} == {
        "rome": 2, "turin": 1, "bari": 1,
    }  # fmt: skip
    ann = settings.access.identify("token")
    assert (ann.subscribe, ann.publish, ann.admin) == (palio.parse("desk = 7"), None, True)
    assert settings.access.anonymous is None, "identities close the door"
    assert (settings.limits.body, settings.limits.header) == (3 << 19, 128 << 10)
    mib = 1 << 20
    assert settings.waiting == WaitingBounds(*(size * mib for size in range(8, 15)))
    assert settings.connections == ConnectionBounds(100, 80, 7, 3_000_000, 7_000_000, 32 * mib)
    assert (config.limits.unsent_bytes, config.limits.closing) == (65 * mib, 7)
    assert settings.subscriptions.predicates_bytes_max == 1 << 20
    assert settings.subscriptions.advertisements_max == 7
    assert settings.subscriptions.watches_max == 9
    assert (settings.keepalive_us, config.times.dial_us_max) == (500_000, 120_000_000)
    assert (settings.full, settings.bounds.retention_us) == (Full.DROP, 172_800_000_000)


NEIGHBOUR = '[neighbours.rome]\nsecret = "0123456789abcdef"\n'
IDENTITY = f'[identities.ann]\ntoken_sha256 = "{HASH}"\n'


@pytest.mark.parametrize(
    ("text", "orphans_us"),
    [
        ("", 7 * 86_400 * 1_000_000),
        ('orphans = "2 h"', 7_200_000_000),
        ("orphans = 90", 90_000_000),
        ('orphans = "never"', None),
        ("orphans = 0", None),
    ],
)
def test_the_grace_of_orphans(tmp_path: Path, text: str, orphans_us: int | None) -> None:
    path = tmp_path / "broker.toml"
    path.write_text(f"{LOCAL}[queues]\n{text}\n")
    assert read(path).settings.orphans_us == orphans_us


MISTAKES = {
    "": r"\[broker\] name: it is missing",
    "[broker": r"broker.toml is not TOML: ",
    "broker = 3": r"broker: this is a section: begin it with a line \[broker\]",
    "[broker]\nname = 3": r"\[broker\] name: it must be a text in quotes",
    '[broker]\nname = "a b"': r"name: 'a b': names are letters, digits",
    '[brokr]\nname = "a"': r"name: it is missing",
    LOCAL + "[limit]": r"limit: there is no such key; did you mean limits\?",
    LOCAL + "[limits]\nbdoy = 1": r"\[limits\] bdoy: there is no such key; did you mean body\?",
    LOCAL + "[limits]\nword = 1": r"\[limits\] word: this key is called control now; rename it",
    LOCAL + "[queues]\nzzz = 1": r"zzz: there is no such key; the keys are full, deliveries, orphans",
    LOCAL + '[limits]\nbody = "4 MB"': r"it must be a size: .* in B, KiB, MiB.*; not '4 MB'",
    LOCAL + "[limits]\nbody = -1": r"body: it must be a size",
    LOCAL + '[limits]\nbody = "5 GiB"': r"all parts together must be smaller than 4 GiB",
    LOCAL + '[limits]\ncontrol = "1000 KiB"': r"control: brokers and clients send up to 1 MiB",
    LOCAL + '[limits]\npredicate = "513 KiB"': r"predicate: other brokers take 512 KiB at most",
    LOCAL + "[limits]\nfilters = 70000": r"filters: other brokers take 65,536 at most",
    LOCAL + "[limits]\nadvertisements = 0": r"0 is too small; it must be at least 1",
    LOCAL + "[limits]\nstuck = 5": r"stuck: it must be at least `link` and a whole frame",
    LOCAL + "[limits]\nunsent = 5": r"unsent: it is for all connections, so it must not be smaller",
    LOCAL + "[limits]\nunfinished = 5": r"unfinished: it must be at least a whole frame",
    LOCAL + "[limits]\nwaiting_bytes = 5": r"waiting_bytes: it must be at least a whole message",
    LOCAL + "[limits]\nheld = 5": r"held: it must be at least a whole message",
    LOCAL + "[limits]\nwaiting_identity = 5": r"it must not be smaller than waiting_bytes",
    LOCAL + "[limits]\nwaiting_total = 5": r"it must not be smaller than waiting_identity",
    LOCAL + "[limits]\nheld_total = 5": r"it must not be smaller than held",
    LOCAL + "[limits]\nstrangers = 0": r"strangers: 0 is too small; it must be at least 1",
    LOCAL + "[limits]\nidentity_connections = 0": r"identity_connections: 0 is too small",
    LOCAL + "[times]\nhandshake = 0": r"handshake: it must be at least 100 ms",
    LOCAL + "[times]\nframe = 0": r"frame: it must be at least 100 ms",
    LOCAL + "[limits]\nconnections = true": r"it must be a whole number, not True",
    LOCAL + "[limits]\nconnections = 0": r"0 is too small; it must be at least 1",
    LOCAL + '[times]\nkeepalive = "soon"': r"it must be a duration: 30 \(seconds\)",
    LOCAL + '[times]\nredial = "9 s"': r"redial_max: it must not be shorter than redial",
    LOCAL + "[times]\nkeepalive = 0": r"keepalive: it must be at least 10 ms",
    LOCAL + "[log]\nkeep = 1e400": r"\[log\] keep: inf is too large",
    LOCAL + "[log]\nkeep = nan": r"keep: it must be a duration",
    LOCAL + f'[log]\nkeep = "{"9" * 400} d"': r"keep: .* is too large",
    LOCAL + f"[limits]\nwaiting = {10**30}": r"waiting: 1000000000000000000000000000000 is too large",
    LOCAL + "[log]\nbytes = 5": r"bytes: it must not be smaller than keep_bytes",
    LOCAL + '[queues]\nfull = "dorp"': r"'dorp' is not one of block, drop, end; did you mean drop",
    LOCAL + 'routing = "drp"': r"'drp' is not one of .*PSF, iPS, PIF, DRP",
    LOCAL + 'listen = "7400"': r"listen: '7400': an address is \"HOST:PORT\"",
    LOCAL + 'listen = "::1:7400"': r"an address is",
    LOCAL + 'listen = "a:99999"': r"'99999' is no port",
    LOCAL + 'advertisements = "yes"': r"it must be true or false, not 'yes'",
    LOCAL + "[neighbours.rome]": r"\[neighbours.rome\] secret: brokers prove who they are",
    LOCAL + '[neighbours.rome]\nsecret = "short"': r"at least 16 characters; `openssl rand",
    LOCAL + "[neighbours.rome]\nsecret = 1234": r"a text in quotes: .*, not something else$",
    LOCAL + NEIGHBOUR + 'secret_env = "X"': r"secret_env: secret is given too; keep one",
    LOCAL + '[neighbours.rome]\nsecret_env = "NO_SUCH"': r"no variable NO_SUCH; set it",
    LOCAL + '[neighbours.rome]\nsecret_file = "no"': r"no cannot be read: No such file",
    LOCAL + NEIGHBOUR + "weight = 0": r"weight: 0 is not a number from 0.001 to 1,000,000",
    LOCAL + NEIGHBOUR + "weight = nan": r"weight: nan is not a number from",
    LOCAL + NEIGHBOUR + "weight = 0.0001": r"weight: 0.0001 is not a number from",
    LOCAL + NEIGHBOUR + "weight = 2e6": r"weight: 2000000.0 is not a number from",
    LOCAL + NEIGHBOUR + 'role = "boss"': r"role: 'boss' is not one of peer, master, slave",
    LOCAL + NEIGHBOUR + 'role = "slave"': r"\[neighbours.rome\] role = 'slave' goes with routing 'forwarding'",
    LOCAL + "advertisements = true": r"advertisements go with routing 'forwarding', not 'iPS'",
    LOCAL + 'routing = "forwarding"\n' + "\n".join(
        NEIGHBOUR.replace("rome", name) + 'role = "master"' for name in ("rome", "bari")
    ): r"broker 'milan' has 2 masters, rome and bari; a broker has one",
    LOCAL + NEIGHBOUR.replace("rome", "milan"): r"this is the broker itself",
    LOCAL + NEIGHBOUR.replace("rome", '"a/b"'): r"a/b: names are letters",
    LOCAL + "[identities.ann]": r"\[identities.ann\] token_sha256: it needs a token or a certificate",
    LOCAL + '[identities.ann]\ntoken_sha256 = "token"': r"64 small hex digits: `printf",
    LOCAL + IDENTITY + IDENTITY.replace("ann", "bob"): r"\[identities.bob\].*ann has the same one; each",
    LOCAL + '[identities.ann]\ncertificate = "a"': r"set authority in \[tls\]",
    LOCAL + IDENTITY + 'subscribe = "x <"': r"\[identities.ann\] subscribe: (.|\n)*\^",
    LOCAL + IDENTITY + 'token = "x"': r"token: there is no such key; did you mean token_sha256",
    LOCAL + "[tls]": r"\[tls\] certificate: TLS needs a certificate and its key",
    LOCAL + '[tls]\ncertificate = "c"\nkey = "k"': r"certificate: there is no file .*/c",
    LOCAL + '[metrics]\nlisten = "127.0.0.1:7400"': r"is where the broker listens",
    LOCAL + NEIGHBOUR + "address = 7400": r'address: it must be "HOST:PORT", or a list',
    LOCAL + NEIGHBOUR + "address = []": r"address: the list is empty; leave the key out",
    LOCAL + NEIGHBOUR + 'address = ["a:1", "b"]': r"address: 'b': an address is",
    LOCAL + "[storage]": r"\[storage\] url: it is missing; for example url = .postgresql://",
    LOCAL + '[storage]\nurl = "mysql://u:pw@h"': r"url: it begins with postgresql://; that is the only",
    LOCAL + '[storage]\nurl = "postgresql://h"\nlease_s = 0.1': r"lease_s: it must be at least 500 ms",
}  # fmt: skip


@pytest.mark.parametrize("text", MISTAKES, ids=lambda text: text[-30:].replace("\n", " "))
def test_mistakes_are_sentences(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidConfig, match=MISTAKES[text]) as caught:
        from_text(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "broker.toml"))


def test_a_mistake_has_fields(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig) as caught:
        from_text(tmp_path, LOCAL + "[limits]\nbdoy = 1")
    error = caught.value
    assert (error.path, error.section, error.key) == (tmp_path / "broker.toml", "[limits]", "bdoy")
    assert error.reason == "there is no such key; did you mean body?"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"no\.toml cannot be read: No such file"):
        read(tmp_path / "no.toml")
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe9'")
    with pytest.raises(InvalidConfig, match="is not TOML"):
        read(tmp_path / "latin.toml")


def test_secrets_come_from_files_and_variables_and_are_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARED", "of the environment")
    (tmp_path / "s").write_text("of the file, with a line end\n")
    config = from_text(
        tmp_path,
        LOCAL + 'secret_env = "SHARED"\n[neighbours.a]\n[neighbours.b]\nsecret_file = "s"\n'
        '[neighbours.c]\nsecret = "said right here, openly"\n' + IDENTITY,
    )  # fmt: skip
    secrets = [neighbour.secret for neighbour in config.settings.neighbours.values()]
    assert secrets == [
        b"of the environment", b"of the file, with a line end", b"said right here, openly",
    ]  # fmt: skip
    shown = repr(config)
    assert not any(secret.decode() in shown for secret in secrets)
    assert HASH not in shown
