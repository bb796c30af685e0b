"""python -m tools.api"""

import argparse

from tools.api import write

if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m tools.api", description=write.__doc__).parse_args()
    print(write())
