"""HTTP: publish, subscribe as Server-Sent Events, over WebSocket or by long poll.

`listener` accepts connections, `connection` is one of them: HTTP/1.1 by h11, bounded in bytes and time.
`routes` finds the handler of a request in `messages`, `events`, `polling`, `socket`, `network` and `logins`.
Each gets a native client in this process from `clients`; so the core checks, bounds and counts.
A broker without [http] imports nothing of this.
"""
