"""One prompt to several models, and one prompt to every row of a table: what `groundswell ask` and `map` run.

experiment.py the options of both commands and their results; summary.py is what a terminal shows
program.py    THE program: a prompt in, an answer out, asked again once where it breaks its schema
shapes.py     JSON schemas: is this one, does a value keep to it
asking.py     the driver of `ask`: every model, every sample
mapping.py    the driver of `map`: every row, every model, and the file that comes of it
templates.py  text with {columns}
checks.py     the little language of --check; verdicts.py says what a reply comes to
tables.py     rows from CSV, TSV, JSON lines, JSON and Parquet; sheets.py writes them
columns.py    what the columns of the output are called
figures.py    how many rows passed which check, per model, and whether two models differ
"""
