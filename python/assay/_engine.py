"""The library for C (assay/c.h): requests and answers as bytes. The module works for every release of Python, because
nothing of it is compiled for one."""
import os
import threading
from ctypes import CDLL, POINTER, Structure, byref, c_char_p, c_int, c_size_t, c_void_p, string_at

from ._library import soname

# A wheel has the library beside this file, a package of a distribution where libraries are.
_beside = os.path.join(os.path.dirname(__file__), "libassay.so")
_library = CDLL(_beside if os.path.exists(_beside) else soname)

INDENTED, ONE_LINE, SVG, SCREEN = range(4)


class _Reach(Structure):
    _fields_ = [("files", c_int), ("catalogues", POINTER(c_char_p)), ("user_catalogue", c_char_p), ("programs", c_char_p), ("date", c_char_p)]


def _function(name, result, *arguments):
    function = getattr(_library, f"assay_{name}")
    function.restype, function.argtypes = result, arguments
    return function


_open = _function("open", c_void_p, POINTER(_Reach))
_close = _function("close", None, c_void_p)
_ask = _function("ask", c_void_p, c_void_p, c_char_p, c_size_t, c_int)
_ask_all = _function("ask_all", None, c_void_p, POINTER(c_char_p), POINTER(c_size_t), c_size_t, c_size_t, c_int, POINTER(c_void_p))
_schema = _function("schema", c_void_p, c_char_p)
_text = _function("text", c_void_p, c_void_p)
_size = _function("size", c_size_t, c_void_p)
_status = _function("status", c_int, c_void_p)
_files = _function("files", c_size_t, c_void_p)
_file_path = _function("file_path", c_char_p, c_void_p, c_size_t)
_file_bytes = _function("file_bytes", c_void_p, c_void_p, c_size_t, POINTER(c_size_t))
_free = _function("free", None, c_void_p)
_catch_interrupt = _function("catch_interrupt", c_int, c_int)


def about():
    """Version, commit and date of the catalogue."""
    return tuple(_function(name, c_char_p)().decode() for name in ("version", "commit", "catalogue_date"))


def _taken(answer):
    """Text, status and files of an answer, which is given back."""
    if not answer:
        raise MemoryError
    try:
        size, files = c_size_t(), []
        for i in range(_files(answer)):
            content = _file_bytes(answer, i, byref(size))
            files.append((os.fsdecode(_file_path(answer, i)), string_at(content, size.value)))
        return string_at(_text(answer), _size(answer)), _status(answer), files
    finally:
        _free(answer)


class _Interruptible:
    """While the engine works for Python's main thread, Ctrl-C stops it; what Python does about Ctrl-C it does afterwards."""

    def __enter__(self):
        self.here = threading.current_thread() is threading.main_thread()
        if self.here:
            _catch_interrupt(1)

    def __exit__(self, *_):
        if self.here and _catch_interrupt(0):
            import signal

            signal.raise_signal(signal.SIGINT)


def schema(verb=None):
    return _taken(_schema(None if verb is None else verb.encode()))[0]


class Engine:
    """Reads the files that requests name."""

    def __init__(self, catalogues, user_catalogue, programs, date):
        listed = (c_char_p * (len(catalogues) + 1))(*map(os.fsencode, catalogues))
        self._engine = _open(byref(_Reach(1, listed, os.fsencode(user_catalogue), os.fsencode(programs), date.encode())))
        if not self._engine:
            raise MemoryError

    def __del__(self):
        if getattr(self, "_engine", None):
            _close(self._engine)

    def answer(self, request, layout=INDENTED):
        with _Interruptible():
            return _taken(_ask(self._engine, request, len(request), layout))

    def answers(self, requests, threads):
        count = len(requests)
        answers = (c_void_p * count)()
        with _Interruptible():
            _ask_all(self._engine, (c_char_p * count)(*requests), (c_size_t * count)(*map(len, requests)), count, threads, INDENTED, answers)
            return [_taken(answer) for answer in answers]
