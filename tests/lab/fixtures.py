"""The lab's fixtures, for the whole test tree; what they give is told in tests/lab/__init__.py."""

import os
from collections.abc import Iterator

import pytest

from tests.lab.containers import Container
from tests.lab.requirements import why_no_lab
from tests.lab.rootfs import Flavour
from tests.lab.session import Lab
from tests.lab.sshd import Sshd
from tests.lab.wire import Wire


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that asks for the lab, directly or not, so that `-m "not lab"` leaves it out."""
    for item in items:
        if "lab" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.lab)


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """The session's lab; skips where the machine can't have one, fails instead under DFLASH_REQUIRE_LAB=1."""
    reason = why_no_lab()
    if reason and os.environ.get("DFLASH_REQUIRE_LAB") == "1":
        pytest.fail(f"DFLASH_REQUIRE_LAB=1, but {reason}")
    if reason:
        pytest.skip(reason)
    session = Lab()
    try:
        yield session
    finally:
        session.close()


@pytest.fixture(scope="session")
def host(lab: Lab) -> Sshd:
    """The training host's sshd on 127.0.0.1."""
    return lab.host()


@pytest.fixture(scope="session")
def jump(lab: Lab) -> Sshd:
    """The jump host's sshd on 127.0.0.2; `lab.host("jump")` is the training host behind it."""
    return lab.jump


@pytest.fixture
def wire(lab: Lab) -> Iterator[Wire]:
    """The link that can be dropped or limited; whole again after each test."""
    yield lab.wire
    lab.wire.restore()


@pytest.fixture(scope="session")
def plain_container(lab: Lab) -> Container:
    """Container 200: a shell loop as init."""
    return lab.container(Flavour.PLAIN)


@pytest.fixture(scope="session")
def systemd_container(lab: Lab) -> Container:
    """Container 201: systemd as init."""
    return lab.container(Flavour.SYSTEMD)


@pytest.fixture(scope="session")
def minimal_container(lab: Lab) -> Container:
    """Container 202: python3-minimal, so without json, ctypes and much else."""
    return lab.container(Flavour.MINIMAL)


@pytest.fixture(scope="session")
def unprivileged_container(lab: Lab) -> Container:
    """Container 203: in a user namespace, with lxcfs."""
    return lab.container(Flavour.UNPRIVILEGED)


@pytest.fixture(params=[Flavour.PLAIN, Flavour.SYSTEMD], ids=str)
def container(lab: Lab, request: pytest.FixtureRequest) -> Container:
    """Container 200 and then 201: what must hold with and without systemd."""
    return lab.container(request.param)
