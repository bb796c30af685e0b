"""python -m benchmarks"""

if __name__ == "__main__":
    import gc
    import sys

    from benchmarks.commands.cli import build
    from benchmarks.suite import Suite

    if sys.argv[1:2] == ["status"]:  # it reads records and ends: searching for garbage takes a tenth of its time
        gc.disable()
    build(Suite())()
