"""libcapgate for Python, with nothing but the standard library.

    import capgate
    artifact = capgate.compile(text, name="github.json", target="docker")
    artifact["argv"]
"""

import ctypes
import ctypes.util
import json
import os

# CAPGATE_LIBRARY names a library that is not installed where the system looks.
_library = ctypes.CDLL(os.environ.get("CAPGATE_LIBRARY") or ctypes.util.find_library("capgate")
                       or "libcapgate.so.0")
_library.capgate_call.restype = ctypes.c_void_p
_library.capgate_call.argtypes = [ctypes.c_char_p, ctypes.c_size_t,
                                  ctypes.POINTER(ctypes.c_size_t)]
_library.capgate_free.restype = None
_library.capgate_free.argtypes = [ctypes.c_void_p]
_library.capgate_version.restype = ctypes.c_char_p


class Refused(Exception):
    """A manifest, an option or a request is wrong; `diagnostics` says what, and where."""

    def __init__(self, diagnostics):
        super().__init__("\n".join(f"{d['code']}: {d['message']}" for d in diagnostics))
        self.diagnostics = diagnostics


def call_raw(request):
    """Bytes in, bytes out."""
    length = ctypes.c_size_t()
    answer = _library.capgate_call(request, len(request), ctypes.byref(length))
    if not answer:
        raise MemoryError
    try:
        return ctypes.string_at(answer, length.value)
    finally:
        _library.capgate_free(answer)


def call(**request):
    answer = json.loads(call_raw(json.dumps(request).encode()))
    if not answer["ok"]:
        raise Refused(answer["diagnostics"])
    return answer


def compile(manifest, name="manifest.json", target="bwrap", **options):
    return call(manifest=manifest, name=name, target=target, options=options)["artifact"]


def targets():
    return [target["name"] for target in call(operation="targets")["targets"]]


def version():
    return _library.capgate_version().decode()
