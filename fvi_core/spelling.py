"""Unknown names, answered by the known ones. Every room may import this module, and it loads nothing."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """'did you mean ...' with the names that are like an unknown one or hold it, in whatever case; all names without
    any.
    """
    import difflib  # here, since only errors need it

    names = sorted(known)
    asked, lower = str(name).lower(), {each.lower(): each for each in names}
    near = [lower[each] for each in difflib.get_close_matches(asked, lower, n=3, cutoff=0.5)]
    near += [each for each in names if asked and asked in each.lower() and each not in near][:3]
    return f"did you mean {' or '.join(map(repr, near))}?" if near else f"known: {', '.join(names) or 'none'}"
