"""python -m tools.api"""

from tools.api import write

if __name__ == "__main__":
    print(write())
