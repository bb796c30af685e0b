"""python -m reports"""

if __name__ == "__main__":
    from benchmarks.suite import Suite
    from reports.cli import build

    build(Suite())(None)
