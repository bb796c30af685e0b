"""python -m benchmarks"""

if __name__ == "__main__":
    import gc
    import sys

    try:  # these take seconds, in which Ctrl-C is likely
        from benchmarks.commands.cli import build
        from benchmarks.suite import Suite
    except KeyboardInterrupt:
        sys.exit(130)

    if sys.argv[1:2] == ["status"]:  # it reads records and ends: searching for garbage takes a tenth of its time
        gc.disable()
    build(Suite())()
