"""Tools for models: the schema of a Python function, its arguments, and the lists of tools as model services take them."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import os
import pathlib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from .errors import Usage

_PLAIN: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_LISTS = (list, tuple, set, frozenset, Sequence)
_MAPPINGS = (dict, Mapping)
_PATHS = (pathlib.Path, pathlib.PurePath, pathlib.PosixPath, pathlib.PurePosixPath, os.PathLike)
_KINDS: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
                                       "null": (type(None),), "array": (list,), "object": (dict,)}
_MARKS = tuple(getattr(typing, name) for name in ("Required", "NotRequired") if hasattr(typing, name))  # Python 3.11
DIALECTS = ("openai", "anthropic", "mcp")
DEPTH_MAX = 16  # of types in each other; one that names itself has no end


def target_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """What is called at last: the function of a functools.partial, the `__call__` of an object."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    called: Callable[..., Any] = type(function).__call__
    return called


def name_of(function: Callable[..., Any]) -> str:
    """The name of FUNCTION; of an object, that of its class."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def of_function(function: Callable[..., Any], skip: Sequence[str] = ()) -> dict[str, Any]:
    """The JSON Schema of the arguments of FUNCTION, by its type hints; Annotated[T, "text"] describes one."""
    properties: dict[str, Any] = {}
    required = []
    hints, name = _hints_of(function), name_of(function)
    for key, parameter in inspect.signature(function).parameters.items():
        if key in skip:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise Usage(f"{name}: a tool's parameters have names, and {parameter} has none")
        if key not in hints:
            raise Usage(f"{name}: the parameter {key} needs a type hint")
        properties[key] = of_type(hints[key], f"{name}: {key}")
        default = parameter.default.value if isinstance(parameter.default, enum.Enum) else parameter.default
        if default is parameter.empty:
            required.append(key)
        elif default is None or isinstance(default, (str, int, float, bool)):
            properties[key]["default"] = default
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        inspect.signature(function)
        return typing.get_type_hints(target_of(function), include_extras=True)
    except (NameError, TypeError, ValueError) as error:
        raise Usage(f"{name_of(function)}: its type hints cannot be read: {error}") from error


def of_type(hint: Any, where: str = "a type", depth: int = 0) -> dict[str, Any]:
    """The JSON Schema of the type HINT; Usage for one that JSON does not have."""
    origin, parts = get_origin(hint), get_args(hint)
    if depth > DEPTH_MAX:
        raise Usage(f"{where}: its type has more than {DEPTH_MAX} levels")
    if origin is Annotated:
        schema = of_type(parts[0], where, depth + 1)
        texts = [part for part in parts[1:] if isinstance(part, str)]
        return {**schema, "description": " ".join(texts)} if texts else schema
    if origin in _MARKS:
        return of_type(parts[0], where, depth + 1)
    if hint is Any:
        return {}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if origin is Literal:
        return _choice(list(parts))
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return _choice([member.value for member in hint])
    if origin in (Union, types.UnionType):
        return {"anyOf": [of_type(part, where, depth + 1) for part in parts]}
    members = _members_of(hint)
    if members is not None:
        return {"type": "object", "properties": {key: of_type(inner, f"{where}.{key}", depth + 1)
                                                 for key, (inner, _) in members.items()},
                "required": [key for key, (_, needed) in members.items() if needed], "additionalProperties": False}
    base = origin or hint
    if base in _PATHS:
        return {"type": "string"}
    if base in _LISTS:
        items = [part for part in parts if part is not Ellipsis]
        return {"type": "array", "items": of_type(items[0], where, depth + 1) if len(items) == 1 else {}}
    if base in _MAPPINGS:
        return {"type": "object",
                "additionalProperties": of_type(parts[1], where, depth + 1) if len(parts) == 2 else True}
    raise Usage(f"{where}: {hint!r} has no JSON; use str, int, float, bool, list, dict, Literal, Enum, a dataclass or a "
                "TypedDict")


def _choice(values: list[Any]) -> dict[str, Any]:
    """One of VALUES; with their type, where they have one."""
    kinds = {_PLAIN.get(type(value)) for value in values}
    kind = kinds.pop() if len(kinds) == 1 else None
    return {"type": kind, "enum": values} if kind else {"enum": values}


def _members_of(hint: Any) -> dict[str, tuple[Any, bool]] | None:
    """The members of a dataclass or TypedDict: type, and whether it is needed. None for anything else."""
    if typing.is_typeddict(hint):
        needed = hint.__required_keys__
        return {key: (inner, key in needed) for key, inner in typing.get_type_hints(hint, include_extras=True).items()}
    if inspect.isclass(hint) and dataclasses.is_dataclass(hint):
        inner = typing.get_type_hints(hint, include_extras=True)
        return {field.name: (inner[field.name], field.default is dataclasses.MISSING
                             and field.default_factory is dataclasses.MISSING)
                for field in dataclasses.fields(hint) if field.init}
    return None


def arguments_of(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """ARGUMENTS, which fit the schema of FUNCTION, as its type hints promise them."""
    hints = _hints_of(function)
    return {key: _made(hints.get(key, Any), value) for key, value in arguments.items()}


def _made(hint: Any, value: Any) -> Any:
    """VALUE of JSON as the type HINT."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated or origin in _MARKS:
        return _made(parts[0], value)
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return hint(value)
    if origin in (Union, types.UnionType):
        return next((_made(part, value) for part in parts if _fits(part, value)), value)
    members = _members_of(hint)
    if members is not None and isinstance(value, dict):
        made = {key: _made(members[key][0], inner) if key in members else inner for key, inner in value.items()}
        return made if typing.is_typeddict(hint) else hint(**made)
    base = origin or hint
    if base is float and isinstance(value, int):
        return float(value)
    if base in _PATHS and isinstance(value, str):
        return pathlib.Path(value) if base in (os.PathLike, pathlib.Path) else base(value)
    if base in _LISTS and isinstance(value, list):
        each = [part for part in parts if part is not Ellipsis]
        made_list = [_made(each[i] if len(each) == len(value) and len(each) > 1 else each[0] if len(each) == 1 else Any, inner)
                     for i, inner in enumerate(value)]
        return made_list if base is list or base is Sequence else base(made_list)
    if base in _MAPPINGS and isinstance(value, dict) and len(parts) == 2:
        return {key: _made(parts[1], inner) for key, inner in value.items()}
    return value


def _fits(hint: Any, value: Any) -> bool:
    """Is VALUE of JSON one of the type HINT, as far as its outer kind says?"""
    schema = of_type(hint)
    if "anyOf" in schema:
        return any(_fits(part, value) for part in get_args(hint))
    if "enum" in schema:
        return value in schema["enum"]
    kinds = _KINDS.get(str(schema.get("type")), (object,))
    if isinstance(value, bool) and schema.get("type") in ("integer", "number"):
        return False
    return isinstance(value, kinds) and set(schema.get("required", ())) <= set(value if isinstance(value, dict) else ())


def description_of(function: Callable[..., Any]) -> str:
    """The first paragraph of its documentation, in one line."""
    while isinstance(function, functools.partial):
        function = function.func
    text = (inspect.getdoc(function) or "").strip().split("\n\n")[0]
    return " ".join(text.split())


def dialect(tools: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    """TOOLS as the model services of NAME take them."""
    if name not in DIALECTS:
        raise Usage(f"schemas({name!r}): the dialects are {', '.join(DIALECTS)}")
    made: list[dict[str, Any]] = []
    for tool in tools:
        about = {"name": tool["name"], "description": tool["description"]}
        if name == "openai":
            made.append({"type": "function", "function": {**about, "parameters": tool["schema"]}})
        else:
            made.append({**about, "input_schema" if name == "anthropic" else "inputSchema": tool["schema"]})
    return made
