"""`groundswell ask` and `map`: one prompt to several models, and one prompt for every row of a table.

options.py     the options of both commands
experiment.py  the experiment: settings and results; blocks.py makes the report
program.py     the program: sends a prompt, and once more if the reply violates its schema
shapes.py      validates JSON Schemas, and values against them
asking.py      the driver of `ask`: every model, every sample
mapping.py     the driver of `map`: every row, every model, and the output table
templates.py   prompt templates with {column} placeholders
checks.py      parses --check; verdicts.py applies checks to replies
tables.py      reads and writes CSV, TSV, JSON Lines, JSON and Parquet
columns.py     names of the new columns
figures.py     pass rates per check and model, and differences between two models
"""
