"""The live network: brokers and clients on real sockets, around the decisions of `palio.protocol`."""
