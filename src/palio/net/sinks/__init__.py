"""Events pushed to HTTP sinks: connections to checked addresses only, and a worker for each subscription."""
