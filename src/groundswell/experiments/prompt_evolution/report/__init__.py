"""The report of an evolution: one page to read, the figures for papers, and every birth as data.

writing.py       THE way of a report: everything to a folder, each file whole or not at all
told.py          what a report is made of, read from the store
saying.py        what was found, in sentences (pure)
lineage.py       who descends from whom (pure); changes.py: what differs between two prompts, word by word (pure)
rows.py          one row per birth, moment and problem of the sealed test, and what their columns mean
plots.py         figures as drawings; searches.py draws how searches went, and the genealogy
findings.py      figures as sections with tables
family.py        the winner's prompt and where it comes from
spending.py      where asks went
failing.py       what is missing, and what the evolved prompt fails on
circumstances.py the sections about the run itself
page.py          the page, section after section
"""
