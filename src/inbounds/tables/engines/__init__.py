"""Where questions are evaluated: an embedded DuckDB that is fed rows, or Spark."""
