"""What is installed is what the checkout has: the wheel carries every module and the stylesheets, and finds them."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from console.resources import stylesheet_path

_CHECKOUT = Path(__file__).parent.parent
_STYLES = sorted(path.name for path in (_CHECKOUT / "styles").glob("*.tcss"))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--disable-pip-version-check"]
    # Without isolation the build uses what is installed; nothing is fetched.
    done = subprocess.run(
        [*pip, "--no-build-isolation", "--wheel-dir", str(folder), str(_CHECKOUT)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        pytest.fail(done.stdout + done.stderr)
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_carries_every_module_and_stylesheet(wheel: Path) -> None:
    carried = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}

    modules = {str(path.relative_to(_CHECKOUT)) for path in (_CHECKOUT / "console").rglob("*.py")}
    styles = {f"console/styles/{name}" for name in _STYLES}
    assert modules | styles | {"console/py.typed"} <= carried
    assert {name.split("/")[0] for name in carried} == {"console"}


def test_unpacked_wheel_finds_its_own_stylesheets(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = "import sys, console.resources as r; print(*(r.stylesheet_path(n) for n in sys.argv[1:]), sep='\\n')"

    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); {code}", *_STYLES],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert done.stdout.split() == [str(tmp_path / "site/console/styles" / name) for name in _STYLES]


def test_checkout_finds_the_stylesheets_beside_the_package() -> None:
    assert [stylesheet_path(name) for name in _STYLES] == [_CHECKOUT / "styles" / name for name in _STYLES]


def test_missing_stylesheet_is_named_with_the_folders_searched() -> None:
    with pytest.raises(FileNotFoundError, match=r"no stylesheet 'none\.tcss' in .*console/styles, .*/styles"):
        stylesheet_path("none.tcss")
