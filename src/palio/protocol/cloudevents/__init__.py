"""CloudEvents 1.0: events, their encodings in HTTP, MQTT and JSON, and what they are as messages. No IO."""
