"""`palio demo`: real flights routed to subscriptions, on Spark or in this process."""
