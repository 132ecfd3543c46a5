"""The experiments that come with Groundswell: each a package with its programs, its drivers and what they find.

For all of them: detectors/ (does a text give a secret away?), reporting/ (pages, drawings, tables), needed.py (what
must be installed beside the bare package), replacing.py, settled.py and small_models.py.
"""
