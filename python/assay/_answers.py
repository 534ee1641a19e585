"""Answers as objects: results are attributes, numbers know their unit."""
import json
import keyword
import re

from . import _library

_no_number = float("nan")


def python_name(name):
    """The name of a key in Python: `micro-batch` is micro_batch, `from` is from_."""
    name = name.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def json_name(name):
    return name[:-1] if name.endswith("_") else name


def in_words_of_python(text):
    """A text about options as functions take them: `--micro-batch 4` is micro_batch=4, `--batch 4Mi` is batch="4Mi"."""
    return re.sub(r"--([a-z][a-z0-9-]*)(?:[ =]([^\s,;()\"]*[^\s,;:.()\"]))?", _as_argument, text)


def _as_argument(found):
    name, value = found.groups()
    words, python = _library.options.get(name, ()), python_name(name)
    if value is not None:
        if re.fullmatch(r"[A-Z]+|[0-9]+(\.[0-9]+)?", value):  # a placeholder, a number
            return f"{python}={value}"
        if value in words or re.search(r"[0-9A-Z/]", value):
            return f'{python}="{value}"'
    return f"{python}={'True' if True in words else ''}" + (f" {value}" if value else "")


class Error(ValueError):
    """A request that cannot be answered: `where` it is wrong, `what` the rule is, and `hint`, what to do instead.

    They name arguments as Python does; `fault` is the error in the words of the command line, as in JSON.
    """

    def __init__(self, fault, request):
        self.fault, self.kind, self.request = fault, fault["kind"], request
        self.where, self.what, self.hint = (in_words_of_python(fault[key]) for key in ("where", "what", "hint"))
        self.where = self.where.removesuffix("=")
        self.also = [type(self)(other, request) for other in fault.get("also", [])]
        place = f"{self.where}: " if self.where else ""
        super().__init__(f"{place}{self.what}" + (f" ({self.hint})" if self.hint else ""))


class InternalError(Error):
    """A bug in Assay: please report it with its `request`."""


def error_of(text, request):
    fault = json.loads(text)["error"]
    return (InternalError if fault["kind"] == "internal" else Error)(fault, request)


class Quantity(float):
    """A number in base units: a float that knows its `unit`, and names of larger and smaller ones.

    Sums, products and quotients keep their units: bytes over seconds are a Bandwidth. A plain number counts in base units.
    """

    __slots__ = ("_members",)
    _unit, _scales = None, {}

    def __new__(cls, value=None, unit=None, **scaled):
        if scaled:  # Time(milliseconds=30)
            (name, amount), = scaled.items()
            if name not in cls._scales:
                raise TypeError(f"{cls.__name__} has no {name}; it has {', '.join(cls._scales) or 'no units'}")
            scale = cls._scales[name]  # below 1 it is the inverse of a whole number
            value = amount / scale if scale >= 1 else amount * round(1 / scale)
        members = value if isinstance(value, dict) else {"value": float(value), "unit": unit or cls._unit or ""}
        kind = _kinds.get(members["unit"], Quantity)
        if not issubclass(kind, cls):
            raise TypeError(f"{members['unit'] or 'a plain number'} is not {cls.__name__}")
        self = super().__new__(kind, _no_number if members["value"] is None else members["value"])
        self._members = members
        return self

    @property
    def value(self):
        return float(self)

    @property
    def unit(self):
        return self._members["unit"]

    def __getattr__(self, name):
        scale = self._scales.get(name)
        if scale is not None:
            return float(self) * scale
        if name in self._members:  # source, note, also
            return self._members[name]
        raise AttributeError(f"a number in {self.unit or 'no unit'} has no {name}")

    def __dir__(self):
        return [*super().__dir__(), *self._scales, *self._members]

    def to_dict(self):
        return self._members

    def __reduce__(self):
        return Quantity, (self._members,)

    def _summed(self, other, result):
        if not isinstance(other, (int, float)):
            return NotImplemented
        if isinstance(other, Quantity) and other.unit != self.unit:
            raise TypeError(f"{self!r} and {other!r} have different units")
        return Quantity(result, self.unit)

    def __add__(self, other):
        return self._summed(other, float.__add__(self, other))

    def __radd__(self, other):
        return self._summed(other, float.__radd__(self, other))

    def __sub__(self, other):
        return self._summed(other, float.__sub__(self, other))

    def __rsub__(self, other):
        return self._summed(other, float.__rsub__(self, other))

    def __neg__(self):
        return Quantity(-float(self), self.unit)

    def __abs__(self):
        return Quantity(abs(float(self)), self.unit)

    def __mul__(self, other):
        return _of_units(float.__mul__(self, other), self, other, 1)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return _of_units(float.__truediv__(self, other), self, other, -1)

    def __rtruediv__(self, other):
        return _of_units(float.__rtruediv__(self, other), Quantity(1.0), self, -1)

    def __repr__(self):
        """4.194 M tokens, 54.48 GB, 376 ms"""
        value, sizes = abs(float(self)), [(1e-9, "n"), (1e-6, "µ"), (1e-3, "m")] if self.unit == "s" else []
        if self.unit not in ("s", ""):
            sizes = [(1, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"), (1e18, "E")]
        scale, prefix = max((s for s in sizes if s[0] <= value < 1000 * s[0]), default=(1, ""))
        between = " " if prefix and self.unit.startswith("token") else ""
        return f"{float(self) / scale:.4g} {prefix}{between}{self.unit}".rstrip()


def _kind(name, unit, **scales):
    """A class of quantities; `scales` has the names of its units, by how many of them a base unit is."""
    return type(name, (Quantity,), {"__slots__": (), "__module__": "assay", "__doc__": f"A Quantity in {unit}.", "_unit": unit, "_scales": scales})


Time = _kind("Time", "s", seconds=1, milliseconds=1e3, microseconds=1e6, minutes=1 / 60, hours=1 / 3600, days=1 / 86400)
Bytes = _kind("Bytes", "B", bytes=1, megabytes=1e-6, gigabytes=1e-9, terabytes=1e-12, mebibytes=2**-20, gibibytes=2**-30)
Bandwidth = _kind("Bandwidth", "B/s", bytes_per_second=1, gigabytes_per_second=1e-9)
Flop = _kind("Flop", "FLOP", flop=1, teraflop=1e-12, petaflop=1e-15)
FlopRate = _kind("FlopRate", "FLOP/s", flop_per_second=1, teraflop_per_second=1e-12)
Intensity = _kind("Intensity", "FLOP/B", flop_per_byte=1)
Tokens = _kind("Tokens", "tokens", tokens=1)
TokenRate = _kind("TokenRate", "tokens/s", tokens_per_second=1)
Money = _kind("Money", "USD", usd=1)
Power = _kind("Power", "W", watts=1)
Energy = _kind("Energy", "J", joules=1, kilowatt_hours=1 / 3.6e6)
Frequency = _kind("Frequency", "Hz", hertz=1)
_kinds = {kind._unit: kind for kind in Quantity.__subclasses__()}
_by_powers = {}


def _powers(unit):
    """How often each base unit is a factor: FLOP/B is {"FLOP": 1, "B": -1}."""
    if unit in ("W", "Hz"):
        unit = {"W": "J/s", "Hz": "/s"}[unit]
    above, _, below = unit.partition("/")
    powers = {}
    for part, power in ((above, 1), (below, -1)):
        for name in filter(None, part.split("·")):
            powers[name] = powers.get(name, 0) + power
    return powers


def _of_units(number, one, other, sign):
    """A product (sign 1) or quotient (-1) with the unit that follows; a plain float where none is left."""
    if number is NotImplemented:
        return number
    powers = _powers(one.unit)
    for name, power in _powers(other.unit if isinstance(other, Quantity) else "").items():
        powers[name] = powers.get(name, 0) + sign * power
    powers = {name: power for name, power in powers.items() if power}
    if not powers:
        return number
    if not _by_powers:
        _by_powers.update((frozenset(_powers(unit).items()), unit) for unit in _kinds)
    unit = _by_powers.get(frozenset(powers.items()))
    if unit is None:
        above, below = ("·".join(name for name, power in sorted(powers.items()) for _ in range(sign * power)) for sign in (1, -1))
        unit = f"{above}/{below}" if below else above
    return Quantity(number, unit)


def _short(value):
    """A member on one line: what has many members of its own shows their names."""
    if isinstance(value, Results) and type(value) is Results:
        line = repr(value)
        return line if "\n" not in line and len(line) <= 60 else f"Results({', '.join(map(python_name, value))})"
    if isinstance(value, list) and any(isinstance(item, (Results, list)) for item in value):
        return f"[{len(value)} of {type(value[0]).__name__}]"
    return f"{value:.4g}" if type(value) is float else repr(value)


def _wrapped(key, value):
    if isinstance(value, dict):
        if "value" in value and "unit" in value:
            return Quantity(value)
        if key == "arguments":  # of a request: assay.train(**alternative.arguments)
            return {python_name(name): given for name, given in value.items()}
        if "lower" in value and "estimate" in value:
            return Range(value)
        return Interval(value) if "low" in value and "coverage" in value else Results(value)
    if isinstance(value, list):
        return [_wrapped("", item) for item in value]
    return value


class Results:
    """Part of an answer: members as attributes or by key. Names that Python keeps for itself end in `_`."""

    __slots__ = ("_data",)

    def __init__(self, data):
        self._data = data

    def _members(self):
        return self._data

    def to_dict(self):
        return self._data

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        members = self._members()
        for key in (name, json_name(name)):
            if key in members:
                return _wrapped(key, members[key])
        raise AttributeError(f"no {name} here; there are: {', '.join(members)}")

    def __getitem__(self, key):
        return _wrapped(key, self._members()[key])

    def __contains__(self, key):
        return key in self._members()

    def __iter__(self):
        return iter(self._members())

    def __len__(self):
        return len(self._members())

    def keys(self):
        return self._members().keys()

    def __dir__(self):
        return [*super().__dir__(), *(python_name(key) for key in self._members())]

    def __eq__(self, other):
        return isinstance(other, Results) and self._data == other._data

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        shown = [f"{python_name(key)}={_short(_wrapped(key, value))}" for key, value in self._members().items()]
        line = f"{type(self).__name__}({', '.join(shown)})"
        return line if len(line) <= 100 else f"{type(self).__name__}(\n    " + ",\n    ".join(shown) + ",\n)"


class Interval(Results):
    """Where measurements put a number: `low` to `high`, with probability `coverage`."""

    __slots__ = ()

    def __repr__(self):
        return f"{self.low!r} .. {self.high!r} ({self.coverage:.0%})"


class Range(Results):
    """An `estimate`, the bounds `lower` and `upper` of ideal hardware, and the `interval` of measurements where there is one."""

    __slots__ = ()

    def __repr__(self):
        within = f", {self.interval!r}" if "interval" in self else ""
        return f"{self.estimate!r} (ideal {self.lower!r} .. {self.upper!r}{within})"


class Answer(Results):
    """An answer: what the command found as attributes, and around it `headline`, `outcome`, `inputs`, `notes`.

    `json` holds the bytes that `assay --format json` prints.
    """

    __slots__ = ("json", "_request", "_draw")

    def __init__(self, text, request, draw):
        super().__init__(None)
        self.json, self._request, self._draw = text, request, draw

    def to_dict(self):
        if self._data is None:
            self._data = json.loads(self.json)
        return self._data

    def _members(self):
        return self.to_dict()["results"]

    @property
    def results(self):
        return Results(self._members())

    @property
    def headline(self):
        return self.to_dict()["headline"]

    @property
    def outcome(self):
        """ok, infeasible or check failed"""
        return self.to_dict()["outcome"]

    @property
    def inputs(self):
        return self.to_dict()["inputs"]

    @property
    def notes(self):
        return self.to_dict().get("notes", [])

    @property
    def derivation(self):
        """With explain=True: how each number was found."""
        return self.to_dict().get("derivation", [])

    def __eq__(self, other):
        return isinstance(other, Answer) and self.json == other.json

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self):
        return Answer, (self.json, self._request, self._draw)

    def __repr__(self):
        return self.headline

    def svg(self):
        """The picture that `assay --format svg` draws; an Error where the command has none."""
        return self._draw(self._request)

    def _repr_svg_(self):
        try:
            return self.svg()
        except Error:
            return None

    def again(self, **changes):
        """The answer to the same request with other arguments: plan.again(batch="8Mi")."""
        from ._ask import ask

        request = json.loads(self._request)
        return ask(request["verb"], {**{python_name(name): value for name, value in request["arguments"].items()}, **changes})

    def four_facts(self):
        """Of a plan, what the page says first: question, answer and detail of each of four, or nothing."""
        from ._facts import facts_of

        return facts_of(self)

    def _repr_html_(self):
        from html import escape

        def row(*cells):
            return f"<tr>{''.join(f'<td style=text-align:left>{escape(cell)}</td>' for cell in cells)}</tr>"

        facts = "".join(row(*fact) for fact in self.four_facts())
        rows = "".join(row(name, value) for name, value in _shown(self._members()))
        notes = "".join(f"<li>{escape(in_words_of_python(note))}</li>" for note in self.notes)
        return (
            f"<p><b>{escape(self.headline)}</b></p>{facts and f'<table>{facts}</table>'}{self._repr_svg_() or ''}"
            f"<details><summary>results</summary><table>{rows}</table></details><ul>{notes}</ul>"
        )


def flat(results, path=""):
    """Each single result by its path, numbers in base units; lists are left out."""
    out = {}
    for key, value in results.items():
        at = f"{path}{key}"
        if isinstance(value, dict):
            if "value" in value and "unit" in value:
                out[at] = _no_number if value["value"] is None else value["value"]
            else:
                out.update(flat(value, at + "."))
        elif not isinstance(value, list):
            out[at] = value
    return out


def _shown(results, path=""):
    for key, value in results.items():
        wrapped = _wrapped(key, value)
        if isinstance(wrapped, Results):
            yield from _shown(value, f"{path}{key}.")
        elif not isinstance(wrapped, (list, dict)):
            yield path + key, f"{wrapped:.4g}" if type(wrapped) is float else str(wrapped)
