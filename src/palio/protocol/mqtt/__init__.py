"""MQTT 5 and 3.1.1 without IO: packets, topics, and connections that speak native frames to the core."""
