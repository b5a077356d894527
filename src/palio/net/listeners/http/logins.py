"""Logins of browsers: an EventSource and a browser's WebSocket cannot send `Authorization`.

    POST /v1/login with the token as `Authorization: Bearer` ─▶ Set-Cookie: a random number, HttpOnly

The cookie is not the token, is good for a while and for reading only (see `routes.Route.takes_cookie`), and the
browser sends it by itself when an EventSource connects again. Tokens never stand in a URL, where logs and
histories keep them. Mercure does the same; a ticket in the URL would not survive a reconnect. Logins are in memory: after a
restart of the broker a page logs in again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie

from palio.net.listeners.http.exchange import Request

COOKIE = "palio_login"
_LOGINS_MAX = 10_000
_TOKEN_LOGINS_MAX = 1_000
"""Of one token: whoever has one ends the logins of no other."""


class Logins:
    def __init__(self, login_s: float, clock: Callable[[], float]) -> None:
        self._login_s, self._clock = login_s, clock
        self._tokens: dict[str, tuple[str, float]] = {}  # the oldest first
        self._numbers: dict[str, dict[str, None]] = {}  # by token, the oldest first

    def open(self, token: str) -> str:
        """Gives the number of a new login."""
        now_s = self._clock()
        while self._tokens:
            oldest = next(iter(self._tokens))
            if len(self._tokens) < _LOGINS_MAX and self._tokens[oldest][1] > now_s:
                break
            self.close(oldest)
        numbers = self._numbers.setdefault(token, {})
        if len(numbers) >= _TOKEN_LOGINS_MAX:
            self.close(next(iter(numbers)))
        number = secrets.token_urlsafe(24)
        self._tokens[number] = token, now_s + self._login_s
        self._numbers.setdefault(token, {})[number] = None
        return number

    def close(self, number: str) -> None:
        token, _ = self._tokens.pop(number, ("", 0.0))
        numbers = self._numbers.get(token)
        if numbers is not None:
            numbers.pop(number, None)
            if not numbers:
                del self._numbers[token]

    def token(self, number: str) -> str | None:
        """The token of a login; None: there is none of this number any more."""
        token, until_s = self._tokens.get(number, ("", 0.0))
        return token if until_s > self._clock() else None

    def cookie(self, number: str, is_secure: bool, is_cross_site: bool) -> str:
        """The value of Set-Cookie; an empty number removes it."""
        age = int(self._login_s) if number else 0
        site = "None" if is_cross_site and is_secure else "Strict"
        secure = "; Secure" if is_secure else ""
        return f"{COOKIE}={number}; Max-Age={age}; Path=/; HttpOnly; SameSite={site}{secure}"


def login_of(request: Request) -> str:
    """The number in the cookie of a request; empty: there is none."""
    try:
        found = SimpleCookie(request.headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value
