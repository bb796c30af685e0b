"""python -m reports"""

if __name__ == "__main__":
    import gc

    from benchmarks.suite import Suite
    from reports.cli import build

    gc.set_threshold(
        100_000, 50
    )  # records and figures leave few cycles, and searching for them takes a tenth of the time
    build(Suite())(None)
