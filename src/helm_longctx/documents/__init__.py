"""What is shown, whoever shows it: documents as data, and the only code that formats numbers and escapes texts.

`document.py` has the types, and `numbers.py` every format of a number. `terminal.py`, `site.py` and `paper.py` render a
document for the terminal, as HTML pages, and as Markdown, LaTeX or PDF, and `data.py` writes its CSV and JSON.
`plots.py` has the specifications of plots.
"""
