"""The soak: two brokers under half of their load for an hour; memory and latency must stay flat.

load.py       clients that publish, subscribe, come and go; how old messages are when they arrive
sampling.py   once a second: memory and queues of the brokers, ages of messages
verdict.py    whether what was sampled grows
drawing.py    the picture
running.py    all of it; `python -m palio.lab.soak`, or `make soak`
"""
