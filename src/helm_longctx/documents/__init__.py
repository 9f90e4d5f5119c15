"""What is shown, whoever shows it: documents as data, and the only code that formats numbers and escapes texts.

`document.py` has the types and writes their CSV and JSON, and `numbers.py` has every format of a number. `terminal.py`
renders a document for the terminal, and `site.py` as HTML pages, Markdown, LaTeX or PDF. `plots.py` makes plots
of the specifications in `plots.yaml`.
"""
