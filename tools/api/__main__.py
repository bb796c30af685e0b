"""python -m tools.api"""

import argparse
from collections.abc import Sequence

from tools import api


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pages and print the first one's path."""
    argparse.ArgumentParser("python -m tools.api", description=api.__doc__).parse_args(arguments)
    print(api.write())


if __name__ == "__main__":
    main()
