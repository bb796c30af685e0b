"""python -m reports"""

if __name__ == "__main__":
    import gc
    import sys

    try:  # these take seconds, in which Ctrl-C is likely
        from benchmarks.suite import Suite
        from reports.cli import build
    except KeyboardInterrupt:
        sys.exit(130)

    # Records and figures leave few cycles, and the search for them takes a tenth of the time.
    gc.set_threshold(1_000_000, 50)
    build(Suite())(None)
