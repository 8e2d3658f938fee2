"""``python -m inbounds`` is the command line."""

from inbounds.cli import main

if __name__ == "__main__":
    main()
