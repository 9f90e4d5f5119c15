"""Reports: a suite's results as a static site or a document, and pages to look into runs. It names no benchmark.

`results.py` reads scores, the other modules make sections of texts, tables and figures (`document.py`), and
`site.py` and `files.py` write them.
"""
