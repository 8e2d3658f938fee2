"""Questions about the people of a health study; the code is in src/inbounds/demo.py, to read and to copy."""

from inbounds.demo import main

main()
