"""MQTT packets as values, their bytes, and a reader that cuts a stream of bytes into packets."""
