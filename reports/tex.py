"""Text as LaTeX, whatever is in it, and how wide it will be."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{c: "\\" + c for c in "&%$#_{}"},
    "±": r"$\pm$", "²": r"$^2$", "−": r"$-$", "—": "---", "–": "--",
    "→": r"$\to$", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
    "×": r"$\times$", "∞": r"$\infty$", "≤": r"$\leq$", "≥": r"$\geq$", "°": r"$^\circ$",
    "†": r"$^\dagger$", "<": r"$<$", ">": r"$>$", "|": r"$|$",
}  # fmt: skip
# Widths in digits of the same font: classes of characters, the first that holds one counts.
WIDTHS = (("iljtfI.,:;'|!()[]/ ", 0.62), ("mw%@&±—→", 1.75), ("MW", 2.1))
LONG = 24  # characters of a word that may be broken at its punctuation


def escape(words: str) -> str:
    """Text for LaTeX: special characters, mathematical signs, Greek letters; ? for what pdflatex cannot set."""
    return "".join(LATEX.get(character) or _letter(character) for character in words)


def flowing(words: str) -> str:
    """The same for running text: long words such as names of metrics and files may be broken after punctuation."""
    parts = re.split(r"(\s+)", words)
    return "".join(_breakable(part) if len(part) > LONG else escape(part) for part in parts)


def wide(words: str) -> float:
    """About how wide a text is, in digits of the same font; rather more than less."""
    return sum(map(_width, words))


def lines(words: str, width: float) -> list[str]:
    """The lines of a text of about that width; a word that is wider alone is cut."""
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
    own = next((width for characters, width in WIDTHS if character in characters), None)
    return own or (1.45 if character.isupper() else 1.0 if character < "\u0180" else 1.5)


def _breakable(word: str) -> str:
    pieces = re.split(r"(?<=[_/.,=+:-])(?=\w)", word)
    cut = [piece[k : k + LONG] for piece in pieces for k in range(0, len(piece), LONG)]
    return r"\allowbreak{}".join(map(escape, cut))


def _letter(character: str) -> str:
    if character < "\u0180":  # Latin, which the font encoding covers
        return character
    greek = _greek(character)
    return f"${greek}$" if greek else "?"


def _greek(character: str) -> str:
    """The command of a small Greek letter; empty for another character."""
    kind, _, letter = unicodedata.name(character, "").rpartition(" ")
    if kind != "GREEK SMALL LETTER":
        return ""
    return {"LAMDA": r"\lambda", "OMICRON": "o"}.get(letter, f"\\{letter.lower()}")


def mathematics(words: str) -> str:
    """An equation in plain letters and signs as LaTeX, which may be broken at its spaces."""
    return " ".join(f"${_formula(part)}$" for part in words.split())


def _formula(part: str) -> str:
    found, at = "", 0
    while at < len(part):
        for pattern, made in TOKENS:
            token = pattern.match(part, at)
            if token:
                found += made(token)
                at = token.end()
                break
        else:
            found += SIGNS.get(part[at]) or _sign(part[at])
            at += 1
    return found


def _sign(character: str) -> str:
    greek = _greek(character)
    return f"{greek} " if greek else character if character.isascii() else "?"


def _plainly(characters: str) -> str:
    """What is above or below the line, on it."""
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
    "Σ": r"\Sigma ", "∏": r"\prod ", "_": r"\_", "^": r"\wedge ", "\\": r"\backslash ", "√": r"\surd ", "≤": r"\leq ",
    "≥": r"\geq ", "→": r"\to ", "∞": r"\infty ", "⟨": r"\langle ", "⟩": r"\rangle ", "∫": r"\int ", "Γ": r"\Gamma ",
    "∑": r"\sum ", "⊗": r"\otimes ", "′": "'", "∝": r"\propto ", "Φ": r"\Phi ", "¹": "^{1}",
}  # fmt: skip
