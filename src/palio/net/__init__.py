"""Brokers and clients on real sockets: asyncio, files and certificates around palio.protocol."""
