"""The experiments, one small file each: SETTINGS, points, run, plot. `palio.lab.experiments` says how."""
