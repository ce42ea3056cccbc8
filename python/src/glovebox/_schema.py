"""Tools for models: the schema of a Python function, and the lists of tools as model services take them."""

from __future__ import annotations

import enum
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from .errors import Usage

_PLAIN: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_LISTS = (list, tuple, set, frozenset, Sequence)
_MAPPINGS = (dict, Mapping)
DIALECTS = ("openai", "anthropic", "mcp")


def of_function(function: Callable[..., Any], skip: Sequence[str] = ()) -> dict[str, Any]:
    """The JSON Schema of the arguments of FUNCTION, by its type hints; Annotated[T, "text"] describes one."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
    except (NameError, TypeError, ValueError) as error:
        raise Usage(f"{_name(function)}: its type hints cannot be read: {error}") from error
    properties: dict[str, Any] = {}
    required = []
    for name, parameter in parameters.items():
        if name in skip:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise Usage(f"{_name(function)}: a tool's parameters have names, and {parameter} has none")
        if name not in hints:
            raise Usage(f"{_name(function)}: the parameter {name} needs a type hint")
        properties[name] = of_type(hints[name], f"{_name(function)}: {name}")
        if parameter.default is parameter.empty:
            required.append(name)
        elif parameter.default is None or isinstance(parameter.default, (str, int, float, bool)):
            properties[name]["default"] = parameter.default
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def of_type(hint: Any, where: str = "a type") -> dict[str, Any]:
    """The JSON Schema of the type HINT; Usage for one that JSON does not have."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        schema = of_type(parts[0], where)
        texts = [part for part in parts[1:] if isinstance(part, str)]
        return {**schema, "description": " ".join(texts)} if texts else schema
    if hint is Any:
        return {}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if origin is Literal:
        return {"enum": list(parts)}
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if origin in (Union, types.UnionType):
        return {"anyOf": [of_type(part, where) for part in parts]}
    base = origin or hint
    if base in _LISTS:
        items = [part for part in parts if part is not Ellipsis]
        return {"type": "array", "items": of_type(items[0], where) if len(items) == 1 else {}}
    if base in _MAPPINGS:
        return {"type": "object", "additionalProperties": of_type(parts[1], where) if len(parts) == 2 else True}
    raise Usage(f"{where}: {hint!r} has no JSON; use str, int, float, bool, list, dict, Literal or Enum")


def description_of(function: Callable[..., Any]) -> str:
    """The first paragraph of its documentation, in one line."""
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


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", function))
