"""Where rows come from: files, frames and stored tables, handed over as Arrow as they are."""
