"""Runs one of the interoperability suites of Eclipse Paho, in a process of its own: their modules have globals.

python mqtt_suite_run.py FOLDER client_test5 PORT
"""

from __future__ import annotations

import importlib
import sys
import unittest

TOPICS = ("TopicA", "TopicA/B", "Topic/C", "TopicA/C", "/TopicA")
FILTERS = ("TopicA/+", "+/C", "#", "/#", "/+", "+/+", "TopicA/#")
PREFIX = "client_test5/"
"""`client_test5` publishes below it; its own option parser, which is not used here, says so, too."""


def main(folder: str, name: str, port: str) -> int:
    sys.path.insert(0, folder)
    suite = importlib.import_module(name)
    prefix = PREFIX if name.endswith("5") else ""
    for key, value in {
        "host": "127.0.0.1",
        "port": int(port),
        "topic_prefix": prefix,
        "topics": [prefix + topic for topic in TOPICS],
        "wildtopics": [prefix + topic for topic in FILTERS],
        "nosubscribe_topics": ["test/nosubscribe"],
    }.items():
        setattr(suite, key, value)
    cases = unittest.defaultTestLoader.loadTestsFromModule(suite)
    result = unittest.TextTestRunner(verbosity=2).run(cases)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
