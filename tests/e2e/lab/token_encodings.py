"""What Python's own libraries make of a token, and how they read it again.

    ENCODINGS["json, ASCII"].write("a/b")  -> '"a/b"'
    ENCODINGS["json, ASCII"].read('"a/b"') -> "a/b"
"""

import base64
import binascii
import html
import json
import re
import typing
import urllib.parse


class Encoding(typing.NamedTuple):
    write: typing.Callable
    read: typing.Callable


def lower_case(text):
    return re.sub("%..", lambda found: found[0].lower(), text)


def all_escaped(pattern):
    return lambda token: "".join(pattern.format(ord(letter)) for letter in token)


def json_of(text):
    return json.loads(f'"{text}"')


def html_of_json(text):
    return json.loads(html.unescape(text))


def from_base64(text):
    return base64.b64decode(text).decode("latin-1").removeprefix("user:")


def from_base64_url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("latin-1")


def wrapped(token, width, line_end):
    text = base64.b64encode(f"user:{token}".encode()).decode()
    return line_end.join(text[at:at + width] for at in range(0, len(text), width))


QUOTE, UNQUOTE = urllib.parse.quote, urllib.parse.unquote
ENCODINGS = {
    "quote": Encoding(QUOTE, UNQUOTE),
    "quote, nothing safe": Encoding(lambda token: QUOTE(token, safe=""), UNQUOTE),
    "quote, much safe": Encoding(lambda token: QUOTE(token, safe="+/=&?#:@!$'()*,;"), UNQUOTE),
    "quote, some safe, lower case": Encoding(
        lambda token: lower_case(QUOTE(token, safe="/&")), UNQUOTE),
    "quote_plus": Encoding(urllib.parse.quote_plus, urllib.parse.unquote_plus),
    "urlencode": Encoding(lambda token: urllib.parse.urlencode({"a": token}),
                          lambda text: urllib.parse.parse_qs(text)["a"][0]),
    "quote of quote": Encoding(lambda token: QUOTE(QUOTE(token)),
                               lambda text: UNQUOTE(UNQUOTE(text))),
    "percent, every character": Encoding(all_escaped("%{:02x}"), UNQUOTE),
    "json": Encoding(json.dumps, json.loads),
    "json of json": Encoding(lambda token: json.dumps(json.dumps(token)),
                             lambda text: json.loads(json.loads(text))),
    "json, every character": Encoding(all_escaped("\\u{:04x}"), json_of),
    "json, every character, upper case": Encoding(all_escaped("\\u{:04X}"), json_of),
    "json, slashes": Encoding(lambda token: json.dumps(token).replace("/", "\\/"), json.loads),
    "json for scripts": Encoding(
        lambda token: json.dumps(token).replace("&", "\\u0026").replace("<", "\\u003c"),
        json.loads),
    "html": Encoding(html.escape, html.unescape),
    "html, decimal": Encoding(all_escaped("&#{};"), html.unescape),
    "html, decimal, padded": Encoding(all_escaped("&#{:04};"), html.unescape),
    "html, hexadecimal": Encoding(all_escaped("&#x{:x};"), html.unescape),
    "html, hexadecimal, upper case": Encoding(all_escaped("&#X{:X};"), html.unescape),
    "html of json": Encoding(lambda token: html.escape(json.dumps(token)), html_of_json),
    "repr": Encoding(lambda token: repr(token)[1:-1],
                     lambda text: text.encode().decode("unicode_escape")),
    "base64": Encoding(lambda token: base64.b64encode(f"user:{token}".encode()).decode(),
                       from_base64),
    "base64, encodebytes": Encoding(
        lambda token: base64.encodebytes(f"user:{token * 3}".encode()).decode(), from_base64),
    **{f"base64, {width} columns, {name}": Encoding(
        lambda token, width=width, end=end: wrapped(token, width, end), from_base64)
       for width in (8, 19, 64) for name, end in (("LF", "\n"), ("CRLF", "\r\n"), ("folded", "\r\n "))},
    "base64 in json, 19 columns": Encoding(lambda token: json.dumps(wrapped(token, 19, "\n")),
                                           lambda text: from_base64(json.loads(text))),
    "base64, quoted": Encoding(lambda token: QUOTE(wrapped(token, 1000, ""), safe=""),
                               lambda text: from_base64(UNQUOTE(text))),
    "base64url": Encoding(
        lambda token: base64.urlsafe_b64encode(token.encode()).decode().rstrip("="),
        from_base64_url),
    "hexlify": Encoding(lambda token: binascii.hexlify(token.encode()).decode(),
                        lambda text: binascii.unhexlify(text).decode("latin-1")),
    "hex, upper case": Encoding(lambda token: token.encode().hex().upper(),
                                lambda text: bytes.fromhex(text).decode("latin-1")),
}
MARK = "\n=== "


def write_all(token):
    return "".join(f"{MARK}{name}\n{encoding.write(token)}"
                   for name, encoding in ENCODINGS.items())


def read_all(text):
    """By name; what cannot be read any more is what it is."""
    found = {}
    for part in text.split(MARK)[1:]:
        name, _, written = part.partition("\n")
        try:
            found[name] = ENCODINGS[name].read(written)
        except ValueError:
            found[name] = written
    return found
