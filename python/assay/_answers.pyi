from typing import Any, Callable, Dict, Generic, Iterator, KeysView, List, Optional, Tuple, TypeVar, Union, overload
from typing_extensions import Self

def in_words_of_python(text: str) -> str: ...
def python_name(name: str) -> str: ...
def json_name(name: str) -> str: ...
def error_of(text: bytes, request: bytes) -> Error: ...
def flat(results: Dict[str, Any], path: str = ...) -> Dict[str, Any]: ...

class Error(ValueError):
    fault: Dict[str, Any]
    kind: str
    where: str
    what: str
    hint: str
    also: List[Error]
    request: bytes
    def __init__(self, fault: Dict[str, Any], request: bytes) -> None: ...

class InternalError(Error): ...

class Quantity(float):
    source: str
    note: str
    also: List[Any]
    def __new__(cls, value: Union[Dict[str, Any], float, None] = ..., unit: Optional[str] = ..., **scaled: float) -> Self: ...
    @property
    def value(self) -> float: ...
    @property
    def unit(self) -> str: ...
    def to_dict(self) -> Dict[str, Any]: ...
    def __add__(self, other: float) -> Self: ...
    def __radd__(self, other: float) -> Self: ...
    def __sub__(self, other: float) -> Self: ...
    def __rsub__(self, other: float) -> Self: ...
    def __neg__(self) -> Self: ...
    def __abs__(self) -> Self: ...
    @overload
    def __mul__(self, other: Quantity) -> Any: ...
    @overload
    def __mul__(self, other: float) -> Self: ...
    @overload
    def __rmul__(self, other: Quantity) -> Any: ...
    @overload
    def __rmul__(self, other: float) -> Self: ...
    @overload
    def __truediv__(self, other: Quantity) -> Any: ...
    @overload
    def __truediv__(self, other: float) -> Self: ...
    def __rtruediv__(self, other: float) -> Any: ...

class Time(Quantity):
    seconds: float
    milliseconds: float
    microseconds: float
    minutes: float
    hours: float
    days: float

class Bytes(Quantity):
    bytes: float
    megabytes: float
    gigabytes: float
    terabytes: float
    mebibytes: float
    gibibytes: float

class Bandwidth(Quantity):
    bytes_per_second: float
    gigabytes_per_second: float

class Flop(Quantity):
    flop: float
    teraflop: float
    petaflop: float

class FlopRate(Quantity):
    flop_per_second: float
    teraflop_per_second: float

class Intensity(Quantity):
    flop_per_byte: float

class Tokens(Quantity):
    tokens: float

class TokenRate(Quantity):
    tokens_per_second: float

class Money(Quantity):
    usd: float

class Power(Quantity):
    watts: float

class Energy(Quantity):
    joules: float
    kilowatt_hours: float

class Frequency(Quantity):
    hertz: float

Q = TypeVar("Q", bound=Quantity, covariant=True)

class Results:
    def __init__(self, data: Any) -> None: ...
    def to_dict(self) -> Dict[str, Any]: ...
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, key: str) -> Any: ...
    def __contains__(self, key: object) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def keys(self) -> KeysView[str]: ...

class Interval(Results, Generic[Q]):
    low: Q
    high: Q
    coverage: float
    basis: str
    rows: int
    groups: int
    extrapolates: bool
    extrapolates_in: List[str]

class Range(Results, Generic[Q]):
    lower: Q
    estimate: Q
    upper: Q
    interval: Interval[Q]

class Answer(Results):
    json: bytes
    def __init__(self, text: bytes, request: bytes, draw: Callable[[bytes], str]) -> None: ...
    @property
    def results(self) -> Results: ...
    @property
    def headline(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def inputs(self) -> Dict[str, Any]: ...
    @property
    def notes(self) -> List[str]: ...
    @property
    def derivation(self) -> List[Dict[str, Any]]: ...
    def again(self, **changes: Any) -> Self: ...
    def four_facts(self) -> List[Tuple[str, str, str]]: ...
    def svg(self) -> str: ...
    def _repr_svg_(self) -> Optional[str]: ...
    def _repr_html_(self) -> str: ...
