"""python -m benchmarks"""

if __name__ == "__main__":
    from benchmarks.cli import build
    from benchmarks.suite import Suite

    build(Suite())()
