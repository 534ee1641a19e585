"""Answers as objects: results are attributes, numbers know their unit."""
import json
import keyword

_no_number = float("nan")


def python_name(name):
    """The name of a key in Python: `micro-batch` is micro_batch, `from` is from_."""
    name = name.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def json_name(name):
    return name[:-1] if name.endswith("_") else name


class Error(ValueError):
    """A request that cannot be answered: `where` it is wrong, `what` the rule is, and `hint`, what to do instead."""

    def __init__(self, fault, request):
        self.kind, self.where, self.what, self.hint = (fault[key] for key in ("kind", "where", "what", "hint"))
        self.also = [type(self)(other, request) for other in fault.get("also", [])]
        self.request = request
        place = f"{self.where}: " if self.where else ""
        super().__init__(f"{place}{self.what}" + (f" ({self.hint})" if self.hint else ""))


class InternalError(Error):
    """A bug in Assay: please report it with its `request`."""


def error_of(text, request):
    fault = json.loads(text)["error"]
    return (InternalError if fault["kind"] == "internal" else Error)(fault, request)


class Quantity(float):
    """A number in base units: a float that knows its `unit`, and names of larger and smaller ones."""

    __slots__ = ("_members",)
    _scales = {
        "s": {"seconds": 1, "milliseconds": 1e3, "microseconds": 1e6, "minutes": 1 / 60, "hours": 1 / 3600, "days": 1 / 86400},
        "B": {"bytes": 1, "megabytes": 1e-6, "gigabytes": 1e-9, "terabytes": 1e-12, "mebibytes": 2**-20, "gibibytes": 2**-30},
        "B/s": {"bytes_per_second": 1, "gigabytes_per_second": 1e-9},
        "FLOP": {"flop": 1, "teraflop": 1e-12, "petaflop": 1e-15},
        "FLOP/s": {"flop_per_second": 1, "teraflop_per_second": 1e-12},
        "FLOP/B": {"flop_per_byte": 1},
        "tokens": {"tokens": 1},
        "tokens/s": {"tokens_per_second": 1},
        "USD": {"usd": 1},
        "W": {"watts": 1},
        "J": {"joules": 1, "kilowatt_hours": 1 / 3.6e6},
        "Hz": {"hertz": 1},
    }

    def __new__(cls, members):
        value = members["value"]
        self = super().__new__(cls, _no_number if value is None else value)
        self._members = members
        return self

    @property
    def value(self):
        return float(self)

    @property
    def unit(self):
        return self._members["unit"]

    def __getattr__(self, name):
        scale = self._scales.get(self.unit, {}).get(name)
        if scale is not None:
            return float(self) * scale
        if name in self._members:  # source, note, also
            return self._members[name]
        raise AttributeError(f"a number in {self.unit or 'no unit'} has no {name}")

    def __dir__(self):
        return [*super().__dir__(), *self._scales.get(self.unit, ()), *self._members]

    def to_dict(self):
        return self._members

    def __reduce__(self):
        return type(self), (self._members,)

    def __repr__(self):
        """4.194 M tokens, 54.48 GB, 376 ms"""
        value, sizes = abs(float(self)), [(1e-9, "n"), (1e-6, "µ"), (1e-3, "m")] if self.unit == "s" else []
        if self.unit not in ("s", ""):
            sizes = [(1, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"), (1e18, "E")]
        scale, prefix = max((s for s in sizes if s[0] <= value < 1000 * s[0]), default=(1, ""))
        between = " " if prefix and self.unit.startswith("token") else ""
        return f"{float(self) / scale:.4g} {prefix}{between}{self.unit}".rstrip()


def _wrapped(key, value):
    if isinstance(value, dict):
        if "value" in value and "unit" in value:
            return Quantity(value)
        if key == "arguments":  # of a request: assay.train(**alternative.arguments)
            return {python_name(name): given for name, given in value.items()}
        return Results(value)
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
        return f"Results({', '.join(self._members())})"


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

    def _repr_html_(self):
        from html import escape

        rows = "".join(
            f"<tr><td style='text-align:left'>{escape(name)}</td><td style='text-align:left'>{escape(value)}</td></tr>"
            for name, value in _shown(self._members())
        )
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return (
            f"<p><b>{escape(self.headline)}</b></p>{self._repr_svg_() or ''}"
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
