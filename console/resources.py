"""Where the files that ship beside the code are found: in a checkout and in an installed wheel alike."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
# A wheel carries the folder inside the package; a checkout has it beside the package.
_STYLE_FOLDERS = (_PACKAGE / "styles", _PACKAGE.parent / "styles")


def stylesheet_path(name: str) -> Path:
    """Return the path of the stylesheet `name` ("main.tcss").

    Raises: FileNotFoundError naming every folder that was searched.
    """
    for folder in _STYLE_FOLDERS:
        path = folder / name
        if path.is_file():
            return path
    searched = ", ".join(str(folder) for folder in _STYLE_FOLDERS)
    raise FileNotFoundError(f"no stylesheet {name!r} in {searched}")
