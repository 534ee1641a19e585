"""generate.py FOLDER: writes, beside the library libassay.so of FOLDER, what follows from it: _verbs.py, a function for each
verb, _verbs.pyi, its types, and _library.py, the name that the library has where it is installed."""
import ctypes
import json
import keyword
import sys
import textwrap
from pathlib import Path

folder = Path(sys.argv[1])
library = ctypes.CDLL(str(folder / "libassay.so"))
library.assay_schema.restype = ctypes.c_void_p
library.assay_text.restype, library.assay_text.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
library.assay_version.restype = ctypes.c_char_p
schema = json.loads(library.assay_text(library.assay_schema(None)))
version = library.assay_version().decode().rsplit(".", 1)[0]
definitions = schema["$defs"]
# The module has a sweep of its own, whose requests are objects; `ask("sweep", file=...)` is that of the program.
verbs = [name.removesuffix(".request") for name in definitions if name.endswith(".request") and name != "sweep.request"]

units = {
    "s": "Time", "B": "Bytes", "B/s": "Bandwidth", "FLOP": "Flop", "FLOP/s": "FlopRate", "FLOP/B": "Intensity",
    "tokens": "Tokens", "tokens/s": "TokenRate", "USD": "Money", "W": "Power", "J": "Energy", "Hz": "Frequency",
}  # fmt: skip
plain = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "Dict[str, Any]"}
taken = {"again", "four_facts", "json", "results", "headline", "outcome", "inputs", "notes", "derivation", "svg", "to_dict", "keys"}


def python_name(name):
    name = name.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def parameters(verb):
    """Positional arguments and options of a verb: name, schema, whether it must be given."""
    arguments = definitions[f"{verb}.request"]["properties"]["arguments"]
    required = arguments.get("required", [])
    positional, options = [], []
    for name, option in arguments["properties"].items():
        # Options have a placeholder or are flags; arguments are the rest.
        is_option = "placeholder" in option or option.get("kind") == "flag" or "enum" in option
        (options if is_option else positional).append((name, option, name in required))
    return positional, options


def wrapped(text, indent, width=120):
    return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent + "    ")


def docstring(verb, positional, options):
    request = definitions[f"{verb}.request"]
    lines = [f'    """{request["description"]}', ""]
    for name, option, _ in [*positional, *options]:
        lines.append(wrapped(f"{python_name(name)}: {option.get('description', '')}", "    "))
    return "\n".join(lines).replace("\\", "\\\\") + '\n    """\n'


def signature(positional, options, typed):
    parts = []
    for name, option, required in positional:
        parts.append(python_name(name) + (f": {argument_type(option)}" if typed else "") + ("" if required else " = ..." if typed else "=None"))
    if options:
        parts.append("*")
    for name, option, _ in options:
        parts.append(python_name(name) + (f": {argument_type(option)} = ..." if typed else "=None"))
    return ", ".join(parts)


def argument_type(option):
    if "anyOf" in option:  # one, or a list of them
        one = argument_type(option["anyOf"][0])
        return f"Union[{one}, Sequence[{one}]]"
    if "enum" in option:
        words = [word for word in option["enum"] if word is not None]
        return f"Optional[Literal[{', '.join(repr(word) for word in words)}]]"
    types = [plain[kind] for kind in option["type"] if kind != "null"]
    if option.get("kind") in ("file", "directory", "model", "catalogue", "records"):
        types.append("PathLike[str]")
    if option.get("kind") == "cluster":  # a chip of one's own
        types.append("Dict[str, Any]")
    return f"Optional[Union[{', '.join(dict.fromkeys(types))}]]"


def class_name(words):
    return "".join(part.capitalize() for word in words for part in word.replace("-", "_").split("_"))


def unit_class(extra):
    return units.get(extra.get("unit", {}).get("const", ""), "Quantity")


def result_type(node, path, classes):
    """The type of a result; classes of objects within it are added to `classes`."""
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[1]
        extra = node.get("properties", {})
        if name == "quantity":
            return unit_class(extra)
        if name == "range":
            return f"Range[{unit_class(extra.get('estimate', {}).get('properties', {}))}]"
        if name == "interval":
            low = extra.get("low", {}).get("properties", {})
            return f"Interval[{unit_class(low)}]"
        return f"{class_name(path[:1])}Arguments" if name == "arguments" else "Results"
    kind = node.get("type")
    if kind == "array":
        return f"List[{result_type(node.get('items', {}), path, classes)}]"
    if kind == "object":
        if not node.get("properties"):
            return "Results"
        name = class_name(path)
        lines = [f"class {name}(Results):"]
        for key, member in node["properties"].items():
            if python_name(key).isidentifier():
                lines.append(f"    {python_name(key)}: {result_type(member, [*path, key], classes)}")
        classes.append("\n".join(lines if len(lines) > 1 else [lines[0] + " ..."]) + "\n")
        return name
    if "enum" in node or "const" in node:
        return "str" if all(isinstance(word, str) for word in node.get("enum", [node.get("const")])) else "Any"
    return plain.get(kind, "Any") if isinstance(kind, str) else "Any"


def answer_class(verb, classes):
    results = definitions[f"{verb}.answer"]["properties"]["results"]
    clash = taken & results.get("properties", {}).keys()
    if clash:
        sys.exit(f"generate.py: results of {verb} hide attributes of answers: {', '.join(sorted(clash))}")
    name = f"{class_name([verb])}Answer"
    lines = [f"class {name}(Answer):"]
    for key, member in results.get("properties", {}).items():
        if python_name(key).isidentifier():
            lines.append(f"    {python_name(key)}: {result_type(member, [verb, key], classes)}")
    classes.append("\n".join(lines if len(lines) > 1 else [lines[0] + " ..."]) + "\n")
    return name


code = ['"""The verbs, generated from `assay schema`."""\nfrom ._ask import ask\n']
stub = [
    "from os import PathLike\nfrom typing import Any, Dict, List, Literal, Optional, Sequence, TypedDict, Union\n",
    f"from ._answers import Answer, Interval, Quantity, Range, Results, {', '.join(units.values())}\n",
]
for verb in verbs:
    positional, options = parameters(verb)
    names = "".join(f"{python_name(name)!r}: {argument_type(option)}, " for name, option, _ in [*positional, *options])
    stub.append(f"{class_name([verb])}Arguments = TypedDict('{class_name([verb])}Arguments', {{{names}}}, total=False)\n")
    code.append(f"\ndef {verb}({signature(positional, options, False)}):\n{docstring(verb, positional, options)}    return ask({verb!r}, locals())\n")
    classes = []
    answer = answer_class(verb, classes)
    stub += classes
    stub.append(f"def {verb}({signature(positional, options, True)}) -> {answer}: ...\n")
names = ", ".join(repr(verb) for verb in verbs)
code.append(f"\n__all__ = [{names}]\n")
stub.append(f"__all__ = [{names}]\n")
(folder / "_verbs.py").write_text("\n".join(code))
(folder / "_verbs.pyi").write_text("\n".join(stub))
given = {}  # of each option the words that it may have as a value, and True where it may be a flag
for verb in verbs:
    for name, option in definitions[f"{verb}.request"]["properties"]["arguments"]["properties"].items():
        option = option.get("anyOf", [option])[0]
        words = [word for word in [*option.get("enum", []), *option.get("examples", [])] if isinstance(word, str)]
        given.setdefault(name, set()).update(words, [True] if option.get("kind") == "flag" else [])
given = {name: sorted(words, key=str) for name, words in given.items() if words}
(folder / "_library.py").write_text(
    f'"""Where the library is, if not beside this file, and the words that options have as values."""\n'
    f'soname = "libassay.so.{version}"\noptions = {given!r}\n'
)
