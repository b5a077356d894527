"""The experiments, one small file each: SETTINGS, points, run, plot (see `experiment.py`)."""
