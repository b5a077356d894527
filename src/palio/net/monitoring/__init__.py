"""What operators see of a broker: log lines, metrics for Prometheus, health checks."""
