"""`python -m popgd` is `popgd`."""

from .cli import main

if __name__ == "__main__":
    main()
