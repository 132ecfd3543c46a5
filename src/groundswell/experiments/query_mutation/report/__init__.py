"""The report of a training: one page to read, the figures for papers, and every episode as data.

writing.py       THE way of a report: everything to a folder, each file whole or not at all
told.py          what a report is made of, read from the store; reading.py plays episodes again from what is stored
rows.py          one row per episode and one per update, and what their columns mean
plots.py         figures as drawings
findings.py      figures as sections with tables
examples.py      which episodes are shown, and how
circumstances.py the sections about the run itself
page.py          the page, section after section
"""
