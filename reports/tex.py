"""Any text as LaTeX, and its approximate width."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

from fvi_core.printing import in_ascii

LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{c: "\\" + c for c in "&%$#_{}"},
    "±": r"$\pm$", "²": r"$^2$", "−": r"$-$", "—": "---", "–": "--",
    "→": r"$\to$", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
    "×": r"$\times$", "∞": r"$\infty$", "≤": r"$\leq$", "≥": r"$\geq$", "°": r"$^\circ$",
    "†": r"$^\dagger$", "<": r"$<$", ">": r"$>$", "|": r"$|$",
    "“": "``", "”": "''", "‘": "`", "’": "'", "„": r"\quotedblbase{}", "‚": r"\quotesinglbase{}",
}  # fmt: skip
ACCENTS = {
    "\u0300": r"\`", "\u0301": r"\'", "\u0302": r"\^", "\u0303": r"\~", "\u0304": r"\=", "\u0306": r"\u",
    "\u0307": r"\.", "\u0308": r"\"", "\u030a": r"\r", "\u030b": r"\H", "\u030c": r"\v", "\u0323": r"\d",
    "\u0326": r"\textcommabelow", "\u0327": r"\c", "\u0328": r"\k",
}  # fmt: skip
LACKING = "ĦħĸĿŀŉŦŧſ"  # Latin letters below U+0180 that the font encoding lacks
CAPITALS = ("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega")
# Widths in digits of the same font: classes of characters, the first that holds one counts.
WIDTHS = (("iljtfI.,:;'|!()[]/ ", 0.62), ("mw%@&±—→", 1.75), ("MW", 2.1))
LONG = 24  # characters of a word that may be broken at its punctuation


def escape(words: str) -> str:
    """Escape text for LaTeX: special characters, accents, mathematical signs, Greek letters; ASCII for all that
    pdflatex lacks."""
    found: list[str] = []
    for character in _characters(words):
        if found and character in ACCENTS:
            found[-1] = f"{ACCENTS[character]}{{{found[-1]}}}"
        else:
            joined = character == "-" and "".join(found[-1:]).endswith("-")  # two hyphens would be set as a dash
            found.append("{}" * joined + _letter(character))
    return "".join(found)


def flowing(words: str) -> str:
    """Escape running text: long words such as names of metrics and files may be broken after punctuation."""
    parts = re.split(r"(\s+)", words)
    return "".join(_breakable(part) if len(part) > LONG else escape(part) for part in parts)


def wide(words: str) -> float:
    """Return the approximate width of a text, in digits of the same font; too large rather than too small."""
    return sum(map(_width, (part for character in _characters(words) for part in _plain(character))))


def lines(words: str, width: float) -> list[str]:
    """Break a text into lines of about this width; a longer word is cut."""
    found = [""]
    for word in words.split():
        if found[-1] and wide(f"{found[-1]} {word}") > width:
            found.append("")
        found[-1] = f"{found[-1]} {word}".strip()
        while wide(found[-1]) > width and len(found[-1]) > 4:
            cut = max(4, next(k for k in range(len(found[-1])) if wide(found[-1][: k + 1]) > width))
            if cut >= len(found[-1]):
                break
            found[-1:] = [found[-1][:cut], found[-1][cut:]]
    return found


def _width(character: str) -> float:
    width = next((width for characters, width in WIDTHS if character in characters), None)
    return width or (1.45 if character.isupper() else 1.0 if character < "\u0180" else 1.5)


def _breakable(word: str) -> str:
    pieces = re.split(r"(?<=[_/.,=+:-])(?=\w)", word)
    cut = [piece[k : k + LONG] for piece in pieces for k in range(0, len(piece), LONG)]
    return r"\allowbreak{}".join(map(escape, cut))


def _characters(words: str) -> Iterator[str]:
    """Yield letters with their accents as far as the font has these, else without."""
    for character in unicodedata.normalize("NFC", words):
        yield from character if _plain(character) == character else unicodedata.normalize("NFD", character)


def _plain(character: str) -> str:
    """Return a character, or its spelling where it cannot be typeset."""
    if character < "\u0180" and character not in LACKING:  # Latin letters that the font encoding covers
        return character if character.isprintable() or character.isspace() else repr(character)[1:-1]
    known = character in LATEX or character in ACCENTS or character in SIGNS or _greek(character)
    return character if known else in_ascii(character)


def _letter(character: str) -> str:
    if character in LATEX or (character < "\u0180" and _plain(character) == character):
        return LATEX.get(character, character)
    sign = _greek(character) or SIGNS.get(character)
    plain = in_ascii(character) if character in ACCENTS else _plain(character)
    return f"${sign.strip()}$" if sign else "".join(LATEX.get(part, part) for part in plain)


def _greek(character: str) -> str:
    """Return the command of a Greek letter; empty for other characters, and for capitals that look Latin."""
    kind, _, letter = unicodedata.name(character, "").rpartition(" ")
    letter = letter.replace("LAMDA", "LAMBDA")
    if kind == "GREEK CAPITAL LETTER" and letter.capitalize() in CAPITALS:
        return f"\\{letter.capitalize()}"
    return ("o" if letter == "OMICRON" else f"\\{letter.lower()}") if kind == "GREEK SMALL LETTER" else ""


def mathematics(words: str) -> str:
    """Return an equation in plain letters and signs as LaTeX that may be broken at its spaces."""
    return " ".join(f"${_formula(part)}$" for part in words.split())


def _formula(part: str) -> str:
    found, at = "", 0
    while at < len(part):
        for pattern, command in TOKENS:
            token = pattern.match(part, at)
            if token:
                found += command(token)
                at = token.end()
                break
        else:
            found += SIGNS.get(part[at]) or _sign(part[at])
            at += 1
    return found


def _sign(character: str) -> str:
    greek = _greek(character)
    return f"{greek} " if greek else character if character.isascii() else rf"\mbox{{{escape(character)}}}"


def _plainly(characters: str) -> str:
    """Return superscripts and subscripts as plain characters."""
    return _formula(unicodedata.normalize("NFKC", characters).replace("−", "-"))


ABOVE, BELOW = "²³¹⁻ᵀᵐ⁰⁴", "ᵢₘₛₖₙⱼ₀₁₂₃₊ₐ"
TOKENS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(\w)\u0304"), lambda m: rf"\bar{{{_formula(m[1])}}}"),
    (re.compile(r"(\w)\u0302"), lambda m: rf"\hat{{{_formula(m[1])}}}"),
    (re.compile(r"_\{([^}]*)\}"), lambda m: rf"_{{{_formula(m[1])}}}"),
    (re.compile(rf"_([^\W_{BELOW}{ABOVE}]+)"), lambda m: rf"_{{{_formula(m[1])}}}"),
    (re.compile(rf"[{ABOVE}]+"), lambda m: rf"^{{{_plainly(m[0])}}}"),
    (re.compile(rf"[{BELOW}]+"), lambda m: rf"_{{{_plainly(m[0])}}}"),
    (re.compile(r"[A-Za-z]{2,}"), lambda m: rf"\mathrm{{{m[0]}}}"),
)
SIGNS = {
    **{c: "\\" + c for c in "&%$#{}"},
    "−": "-", "·": r"\cdot ", "~": r"\sim ", "∼": r"\sim ", "‖": r"\Vert ", "∇": r"\nabla ", "∂": r"\partial ",
    "∈": r"\in ", "…": r"\ldots ", "½": r"\frac{1}{2}", "≈": r"\approx ", "⊙": r"\odot ", "×": r"\times ",
    "∏": r"\prod ", "_": r"\_", "^": r"\wedge ", "\\": r"\backslash ", "√": r"\surd ", "≤": r"\leq ",
    "≥": r"\geq ", "→": r"\to ", "∞": r"\infty ", "⟨": r"\langle ", "⟩": r"\rangle ", "∫": r"\int ", 
    "∑": r"\sum ", "⊗": r"\otimes ", "′": "'", "∝": r"\propto ", "¹": "^{1}",
}  # fmt: skip
