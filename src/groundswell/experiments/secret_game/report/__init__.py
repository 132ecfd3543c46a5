"""The report of an experiment: one page to read, the figures for papers, and every interaction as data.

writing.py        THE way of a report: everything to a folder, each file whole or not at all
told.py           what a report is made of
rows.py           one row per interaction; files.py writes them as JSON, CSV and Parquet; columns.py explains them
selection.py      which conversations are shown; transcripts.py shows them
plots.py          figures as drawings, with more_plots.py; drawing.py draws, and gives them the page's colours
findings.py       figures as sections with tables; contests.py: who does better; doings.py: what else agents do
circumstances.py  the sections about the run itself
page.py           the page, section after section
markup.py         HTML from parts that are escaped; numbers.py: how figures are written; style.py: how the page looks
"""
