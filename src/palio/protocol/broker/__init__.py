"""The core of a broker, without sockets, disks and clocks."""
