"""Letters three rows high, made of half blocks: readable across a room, also in grey.

A letter is a bitmap five pixels high; a pixel is one cell wide and half a cell high. Pure.
"""

from __future__ import annotations

from functools import lru_cache

_HEIGHT = 5

_FONT: dict[str, str] = {
    "A": ".##. #..# #### #..# #..#",
    "B": "###. #..# ###. #..# ###.",
    "C": ".### #... #... #... .###",
    "D": "###. #..# #..# #..# ###.",
    "E": "#### #... ###. #... ####",
    "F": "#### #... ###. #... #...",
    "G": ".### #... #.## #..# .###",
    "H": "#..# #..# #### #..# #..#",
    "I": "# # # # #",
    "J": "...# ...# ...# #..# .##.",
    "K": "#..# #.#. ##.. #.#. #..#",
    "L": "#... #... #... #... ####",
    "M": "#...# ##.## #.#.# #...# #...#",
    "N": "#..# ##.# #.## #..# #..#",
    "O": ".##. #..# #..# #..# .##.",
    "P": "###. #..# ###. #... #...",
    "Q": ".##. #..# #..# #.## .###",
    "R": "###. #..# ###. #.#. #..#",
    "S": ".### #... .##. ...# ###.",
    "T": "##### ..#.. ..#.. ..#.. ..#..",
    "U": "#..# #..# #..# #..# .##.",
    "V": "#...# #...# #...# .#.#. ..#..",
    "W": "#...# #...# #.#.# ##.## #...#",
    "X": "#..# #..# .##. #..# #..#",
    "Y": "#...# .#.#. ..#.. ..#.. ..#..",
    "Z": "#### ...# .##. #... ####",
    "0": ".##. #..# #..# #..# .##.",
    "1": ".#. ##. .#. .#. ###",
    "2": "###. ...# .##. #... ####",
    "3": "###. ...# .##. ...# ###.",
    "4": "#..# #..# #### ...# ...#",
    "5": "#### #... ###. ...# ###.",
    "6": ".##. #... ###. #..# .##.",
    "7": "#### ...# ..#. .#.. .#..",
    "8": ".##. #..# .##. #..# .##.",
    "9": ".##. #..# .### ...# .##.",
    ".": ". . . . #",
    ",": ".. .. .. .# #.",
    "/": "...# ...# ..#. .#.. #...",
    "?": "###. ...# .##. .... .#..",
    "%": "#..# ...# .##. #... #..#",
    "+": "... .#. ### .#. ...",
    "-": "... ... ### ... ...",
    "~": ".... .... .#.# #.#. ....",
    "m": "..... ..... ####. #.#.# #.#.#",
    "s": ".... .### ##.. ..## ###.",
    "e": ".... .##. #### #... .###",
    "h": "#... #... ###. #..# #..#",
    "d": "...# ...# .### #..# .###",
    " ": ".. .. .. .. ..",
}
_SAME = {"−": "-", "–": "-"}
_HALVES = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}


def can_draw(text: str) -> bool:
    return all(_SAME.get(char, char) in _FONT for char in text)


@lru_cache(maxsize=128)
def big(text: str) -> tuple[str, str, str]:
    """Return the three rows of a text, letters one cell apart. Unknown letters are drawn as `?`."""
    glyphs = [_FONT.get(_SAME.get(char, char), _FONT["?"]).split() for char in text]
    lines = [".".join(glyph[y] for glyph in glyphs) for y in range(_HEIGHT)]
    lines.append("." * len(lines[0]))
    pairs = [(lines[y], lines[y + 1]) for y in range(0, _HEIGHT, 2)]
    top, middle, bottom = (
        "".join(_HALVES[a == "#", b == "#"] for a, b in zip(upper, lower, strict=True)) for upper, lower in pairs
    )
    return top, middle, bottom


def big_width(text: str) -> int:
    return len(big(text)[0])
