"""Compression of matplotlib's SVG: smaller files, with all positions exact to the hundredth."""

from __future__ import annotations

import re
from decimal import Decimal

NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
LINES = re.compile(rf"M ({NUMBER}) ({NUMBER})\s+((?:L {NUMBER} {NUMBER}\s*)+)")
PATH = re.compile(r'(?<= d=")[^"]*')
STYLE = re.compile(r' style="([^"]*)"')
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def slim(drawn: str) -> str:
    """A graphic without its head and metadata, with shorter names, relative lines, and each style once."""
    drawn = re.sub(r"<\?xml.*?\?>\s*|<!DOCTYPE.*?>\s*|<metadata>.*?</metadata>\s*|<!--.*?-->", "", drawn, flags=re.S)
    drawn = re.sub(r'\s*xmlns:xlink="[^"]*"', "", drawn).replace("xlink:href=", "href=")
    drawn = PATH.sub(lambda path: relative(path[0]), drawn)
    return re.sub(r">\s*\n\s*<", ">\n<", short(classed(drawn))).strip() + "\n"


def relative(path: str) -> str:
    """Return a path with relative lines, exactly: coordinates are decimals, not floats."""

    def relative_lines(lines: re.Match[str]) -> str:
        numbers = [Decimal(text) for text in (lines[1], lines[2], *re.findall(NUMBER, lines[3]))]
        steps = " ".join(plain(later - earlier) for earlier, later in zip(numbers, numbers[2:]))
        return f"M{lines[1]} {lines[2]}l{steps} ".replace(" -", "-")

    return " ".join(LINES.sub(relative_lines, path).split())


def plain(number: Decimal) -> str:
    """Return the shortest form of a number."""
    text = f"{number.normalize():f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def classed(drawn: str) -> str:
    """A graphic whose styles stand once in its head, as classes."""
    names = {style: _letters(k) for k, style in enumerate(dict.fromkeys(STYLE.findall(drawn)))}
    rules = "".join(f".{name}{{{style}}}\n" for style, name in names.items())
    return STYLE.sub(lambda style: f' class="{names[style[1]]}"', drawn).replace("</style>", f"{rules}</style>", 1)


def short(drawn: str) -> str:
    """Shorten the names in use and remove the others."""
    used = dict.fromkeys(re.findall(r'(?:href="|url\()#([^")]+)', drawn))
    names = {name: _letters(k) for k, name in enumerate(used)}
    drawn = re.sub(r'((?:href="|url\()#)([^")]+)', lambda link: link[1] + names[link[2]], drawn)
    return re.sub(r' id="([^"]*)"', lambda id_: f' id="{names[id_[1]]}"' if id_[1] in names else "", drawn)


def _letters(k: int) -> str:
    return ALPHABET[k] if k < 26 else _letters(k // 26 - 1) + ALPHABET[k % 26]
