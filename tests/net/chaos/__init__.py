"""Chaos: real brokers, clients and connections under a seeded plan of faults, judged by brute force.

plans.py        which faults, how many, how long; `make chaos CHAOS=name`
run.py          20 clients publish and subscribe while a plan runs; then the judgement
reading.py      what the applications do: acknowledge, give back, reject
dead_letters.py what was rejected or given up, and must be a dead letter once
listeners.py    readers of MQTT and of Server-Sent Events
log.py          what happened when
scene.py        five brokers with a line for each link and client: killed, frozen, cut off
scene_*.py      the same with something else that fails: clocks, configuration, disk, database
../judgement.py what each subscription must have got
"""
