"""The report of an experiment: one page to read, the figures for papers, and every interaction as data.

writing.py        THE way of a report: everything to a folder, each file whole or not at all
told.py           what a report is made of
rows.py           one row per interaction; columns.py explains them
selection.py      which conversations are shown; transcripts.py shows them
plots.py          figures as drawings, with more_plots.py
findings.py       figures as sections with tables; contests.py: who does better; doings.py: what else agents do
circumstances.py  the sections about the run itself
page.py           the page, section after section

What the reports of all experiments are made of is in experiments/reporting/: the frame, HTML from escaped parts, how
figures are written, drawings, and rows as JSON, CSV and Parquet.
"""
