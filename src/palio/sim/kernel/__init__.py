"""The common kernel of all simulations: time, networks, disks, plans and their text."""
