"""python -m benchmarks"""

if __name__ == "__main__":
    from benchmarks.commands.cli import build
    from benchmarks.suite import Suite

    build(Suite())()
