"""The protocol without input and output: decisions here, sockets and clocks elsewhere."""
