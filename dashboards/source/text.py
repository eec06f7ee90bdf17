"""YAML for what the rules need: maps, lists, texts and whole numbers. Texts are quoted as JSON, which is YAML as well."""

import json
import re

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_:]*")


def scalar(value):
    if isinstance(value, str) and not PLAIN.fullmatch(value):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def lines(value, indent):
    pad = " " * indent
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield f"{pad}{key}:"
            yield from lines(inner, indent + 2)
        elif isinstance(inner, list):
            yield f"{pad}{key}:{'' if inner else ' []'}"
            for item in inner:
                yield from listed(item, indent + 2)
        elif key == "expr":
            yield f"{pad}{key}: >-"
            yield f"{pad}  {inner}"
        else:
            yield f"{pad}{key}: {scalar(inner)}"


def listed(item, indent):
    if not isinstance(item, dict):
        yield f"{' ' * indent}- {scalar(item)}"
        return
    first, *rest = lines(item, indent + 2)
    yield f"{' ' * indent}- {first.lstrip()}"
    yield from rest


def yaml(value, heading):
    return f"# {heading}\n" + "\n".join(lines(value, 0)) + "\n"
