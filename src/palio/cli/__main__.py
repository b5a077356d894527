"""`python -m palio.cli` is `palio`."""

from palio.cli import main

if __name__ == "__main__":
    main()
