"""Speed and accuracy figures, measured by one command: ``python -m benchmarks [name ...]``.

Each module measures one subject and writes its table, as text and as JSON, to ``benchmarks/results``.
"""
