"""The built-in experiments. Each is a package with its options, programs, drivers and report.

Shared by all: detectors/ (does a text reveal a secret?), options.py, experiment.py, python.py (experiments as
functions), results.py and report.py (files and reports), needed.py (optional packages), outage.py and settled.py.
"""
