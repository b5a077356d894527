"""What travels on a connection: frames, control messages, message batches."""
