"""A broker as a process: the server, its host, and the parts that connect the core to the machine."""
