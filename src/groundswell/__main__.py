"""`python -m groundswell` is the command line."""

from groundswell.cli.app import main

main()
