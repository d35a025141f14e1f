"""The packages that are cut into rooms behind one face: nothing is left out of it, and all of it can be decoded."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType

import msgspec
import pytest
from msgspec import Struct

from console import model, protocol

_FACES = [model, protocol]


def _made_in(module: ModuleType) -> set[str]:
    """Return the names of the public classes that a module itself defines."""
    return {
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__ and not name.startswith("_")
    }


def _structs(face: ModuleType) -> list[type[Struct]]:
    found = [getattr(face, name) for name in face.__all__]
    return [value for value in found if isinstance(value, type) and issubclass(value, Struct)]


@pytest.mark.parametrize("face", _FACES, ids=lambda face: face.__name__)
def test_face_shows_all_that_its_rooms_define(face: ModuleType) -> None:
    rooms = [import_module(f"{face.__name__}.{room.name}") for room in pkgutil.iter_modules(face.__path__)]

    defined = set[str]().union(*map(_made_in, rooms))

    assert len(rooms) > 5
    assert defined - set(face.__all__) == set()


@pytest.mark.parametrize("struct", [*_structs(model), *_structs(protocol)], ids=lambda struct: struct.__name__)
def test_struct_finds_the_types_of_its_fields_in_its_own_room(struct: type[Struct]) -> None:
    # Annotations are text until somebody decodes: a name that only another room imports would fail only then.
    msgspec.json.Decoder(struct)
