"""Capability strings, right and wrong, and what capgate itself says of each."""

import json
import random

import launch

VALUES = [{"X": "x", "ROOT": "/srv/one", "HOST": "api.example.com", "PORT": "443"},
          {"X": "true", "ROOT": "/", "HOST": "fd00::1", "PORT": "1"},
          {"X": ".", "ROOT": "/a/", "HOST": "[fd00::1", "PORT": "65535"},
          {"X": "unix:/run/x", "ROOT": "a", "HOST": "::1]", "PORT": "9"},
          {"X": "GET", "ROOT": "/home/u/w", "HOST": ".example.com", "PORT": "0"}]

ACTIONS = {"fs": ["read", "write", "create", "delete", "read,write", " read , write ", "\"read\"",
                  "\"read \"", "read,read", "execute", "", "Read"],
           "net": ["connect", "listen", "\"connect\"", " connect ", "connect,connect",
                   "connect,listen", "dial"],
           "exec": ["spawn", "\"spawn\"", "run"],
           "env": ["read", "inject", "read,inject", "\"inject\"", "write"],
           "ipc": ["connect", "\"connect\"", "listen"]}
SCOPES = {
    "fs": ["/workspace/**", "/a", "/a//b/./c", "/a/", "/a/.", "/.", "/", "/**", "/*", "/a/*.md",
           "/a/*/", "/a/*/.", "/a/*/b", "/a/**/b", "/a/x**", "/a/***", "/a/*x*", "/a/*x**", "/a b",
           "/a ", "/a /", "/a /.", "/a b ", "/a/..", "/a/../b", "/a/...", "/a/..b", "/a/.b", "a",
           "./a", "~/a", "", "/a$", "/a$1", "/$A", "/a$_", "/${X}", "${ROOT}", "${ROOT}/**",
           "${ROOT}**", "${ROOT}x", "/a/*/${X}", "/a/${X}/*", "/a/*${X}/b", "x${ROOT}", "${x}",
           "/${", "/{a,b}", "/[a]", "\"/a:b\"", "\"/a?b\"", "\"/a\\\"b\"", "\"/a\\\\b\"",
           "\"/a\\b\"", "\"/a", "/a\"b", "/a:b", "\"/a\"b", "\"/a \"", "\"/..?x\"", "\"/?x\"",
           "/proc", "/proc/self", "/sys/x", "/dev", "/device", "/process", "/etc", "/etc/**",
           "/etc/*", "/etc/hosts", "/etc/...", "//etc//", "/run", "/run/x", "/var/run", "/var",
           "/var//run/.", "/root", "/root/x", "/home", "/home/u", "/home/u/**", "/home/u/w",
           "/home/.u", "/home/./u", "/Users/a", "/Users/a/b", "/tmp", "/tmp/**", "/tmp/*",
           "/usr/lib", "/a/" + "n" * 255, "/a/" + "n" * 256, "/a/" + "é" * 127, "/a/" + "é" * 128,
           "/ä/ö", "/a\tb", "/a\x7f", "/" + "a/" * 300 + "b", "/" + "a/" * 2100, "/a\\b", "/a&b=c",
           "/a=b", "\"\"", "\"/home/u\"", "\"/proc?\"", "${ROOT}/..", "${ROOT}/ "],
    "net": ["api.example.com", "API.Example.com.", "*", "*.example.com", "*.a", "a", "a_b", "-a",
            "a-", "a..b", ".a", "a.", "1.2.3.4", "1.2.3", "1.2.3.4.5", "01.2.3.4", "256.1.1.1",
            "1.2.3.4.", "0x7f", "a.0x7f", "0x", "0xg", "0x7f.a", "127.1", "a.1", "1a", "1-a", "1-1",
            "a.1-1", "1-", "_", "_a._b", "xn--a", "é.com", "[::1]", "[2001:db8::1]", "[::]",
            "[1:2:3:4:5:6:7:8]", "[1:2:3:4:5:6:7::]", "[::2:3:4:5:6:7:8]", "[1:2]", "[:::]",
            "[::ffff:1.2.3.4]", "[::ffff:102:304]", "[fe80::1%eth0]", "::1", "\"::1\"",
            "\"[::1]\"", "\"a.b\"", "\"a.b", "a.b\"", "**", "*.*.a", "a.*.b", "*a", "https", "a/b",
            "u@a", "a b", "", "${HOST}", "*.${HOST}", "*${HOST}", "[${HOST}]", "[${HOST}",
            "${HOST}]", "[fd00::${X}]", "a.${HOST}", "${HOST}.localhost", "\"${HOST}\"",
            "${h}", "localhost", "a.localhost", "*.localhost", "l" * 63 + ".a", "l" * 64 + ".a",
            "a." + "l" * 63, "a." + "l" * 64, "ab." * 84 + "a", "ab." * 84 + "abc",
            "ab." * 84 + "abcd", "*." + "ab." * 84 + "a", "443", "8080", "0"],
    "exec": ["git", "g++", "a.b", "a_b-c", "/bin/sh", "sh*", "*", "", "-a", ".a", "a" * 255,
             "a" * 256, "\"git\"", "\"git", "${X}", "a${X}", "a b", "é", "a/${X}", "${X}/"],
    "env": ["A", "A_B1", "_A", "1A", "a", "A-B", "", "\"A\"", "\"A", "${X}", "A${X}", "PATH",
            "LD_PRELOAD", "GITHUB_TOKEN", "MY_PRIVATE_KEY", "A B", "É"],
    "ipc": ["x11", "self", "netlink-route", "dbus:session", "\"dbus:session\"", "dbus:system",
            "\"dbus\":\"session\"", "dbus", "dbus:x", "wayland", "unix:/run/x", "\"unix:/run/x\"",
            "unix:\"/run/x\"", "\"unix\":/run/x", "unix:x", "unix:/", "unix://", "unix:/.",
            "unix:/...", "\"unix:/\"", "\"unix:/?\"", "unix:/a/..", "unix:/a*", "unix:/a ",
            "\"unix:/a \"", "unix:", "unix", "unix:/$A", "unix:/${X}", "${X}", "\"${X}\"",
            "unix:${ROOT}", "dbus:${X}", "\"unix:/a\\\"b\"", "unix:/a:b", "\"unix:/a:b\"", "",
            "/run/x", "unix:/run/docker.sock", "unix:/[a]"]}
PORTS = ["", "", ":443", ":1", ":65535", ":65536", ":99999", ":0", ":080", ":-1", ":+1", ":", ":a",
         ":\"443\"", ":443:1", ":${PORT}", ":4${PORT}", ":1-2", ":*", "://x", ": 443"]
REFINEMENTS = {
    "fs": ["unsafe=true", "unsafe=\"true\"", "unsafe=${X}", "unsafe=1", "unsafe=", "unsafe",
           "nestedSandbox=true", "unsafe=true&unsafe=true", ""],
    "net": ["sni=any", "sni=match", "sni=strict", "sni=none", "sni=\"any\"", "sni=${X}",
            "proto=tls", "proto=udp", "proto=detect", "methods=GET", "methods=GET,POST",
            "methods=get", "methods=GET,", "methods=", "methods=${X}", "methods=GET,${X}",
            "paths=/v1/**", "paths=/a,/b", "paths=/a,b", "paths=a", "paths=/a?b", "paths=/a%20",
            "paths=/$a", "paths=/${X}/b", "paths=${ROOT}", "paths=/a:b;c=d@e~[f]!'()*+", "paths=",
            "paths=/a\\b", "paths=/a#b", "paths=\"/a\"", "paths=/.0x1", "private=true",
            "private=yes", "unsafe=true", "", "sni", "=any", "private=${X}"],
    "exec": ["nestedSandbox=true", "nestedSandbox=1", "unsafe=true", "nestedSandbox=${X}"],
    "env": ["to=a.b:443", "to=a.b", "to=*.b:443", "to=1.2.3.4:443", "to=[::1]:443", "to=a.b:0",
            "to=${HOST}:443", "to=a.b:${PORT}", "to=\"a.b:443\"", "to=https://a.b", "to=*", "to=",
            "to=localhost:1", "as=basic", "as=header:X-Key", "as=header:", "as=header:Host",
            "as=header:X Y", "as=cookie", "as=${X}", "as=query", "unsafe=true", "x=y", "tax=1"],
    "ipc": ["unsafe=true", "unsafe=false", "sni=any", "unsafe=${X}"]}
OTHERS = ["clock:system", "clock:tzdata", "clock:\"system\"", "clock:utc", "clock:", "clock:${X}",
          "clock:system:x", "clock:system?a=b", "clock", "", ":", "fs", "fs:", "fs:read", "FS:read:/a",
          "file:read:/a", "net:", "assert:", "assert:a", "assert:a/b.c-d_e", "assert:a b",
          "assert:a:", "assert:a:text ? & \"x\"", "assert:a:\"text\"", "assert:a:\"", "assert:a:\"x",
          "assert:a:\"x\"y", "assert:a:\"x\\\"y\"", "assert:a:\"x\\y\"", "assert:a:\"\"",
          "assert:a:x\ny", "assert:é", "assert:a:é${X}", "assert:a:x\n", "limit:x:1", "limit:cpu",
          "limit:cpu:1%:2", "limit:cpu:1%?a=b", "limit:\"cpu\":1%", "limit:${X}:1"]
LIMITS = {"cpu": ["1%", "100000%", "100001%", "0%", "1", "%", "01%", "${X}", "${PORT}%"],
          "memory": ["1", "1K", "512M", "1G", "1048576G", "1048577G", "9999999G", "1T", "1k", "0",
                     "1125899906842624", "1125899906842625", "99999999999999999", "1073741824M",
                     "1.5G", "-1", "1 ", "\"1G\"", "${PORT}M"],
          "disk": ["512M", "x"], "files": ["1", "1000000", "1000001", "1K"],
          "pids": ["1", "4000000", "4000001", "3999999"],
          "time": ["1s", "30m", "8760h", "8761h", "31536000s", "525600m", "1", "1d", "1ms"]}
NOISE = list("\"\\:?&=,*/.$[]{}() -_09azAZ%#@~\x01\x7fé\U0001f600") + ["${X}", "..", "**", "//"]


def composed(choose):
    """Every piece of the lists with a usual rest, then pieces at random."""
    usual = {"fs": "read", "net": "connect", "exec": "spawn", "env": "inject", "ipc": "connect"}
    scope = {"fs": "/a", "net": "a.b:443", "exec": "git", "env": "A", "ipc": "x11"}
    for kind, scopes in SCOPES.items():
        yield from (f"{kind}:{usual[kind]}:{each}" for each in scopes)
        yield from (f"{kind}:{each}:{scope[kind]}" for each in ACTIONS[kind])
        yield from (f"{kind}:{usual[kind]}:{scope[kind]}?{each}" for each in REFINEMENTS[kind])
    yield from (f"net:connect:a.b{each}" for each in PORTS)
    yield from (f"net:listen{each}" for each in PORTS)
    yield from (f"net:listen:{each}?sni=any" for each in ("1", "2"))
    yield from (f"limit:{name}:{each}" for name, values in LIMITS.items() for each in values)
    yield from OTHERS
    while True:
        kind = choose.choice(list(SCOPES))
        text = f"{kind}:{choose.choice(ACTIONS[kind])}:{choose.choice(SCOPES[kind])}"
        if kind == "net":
            text += choose.choice(PORTS)
        few = choose.choice([0, 0, 1, 1, 2, 3])
        if few:
            text += "?" + "&".join(choose.choices(REFINEMENTS[kind], k=few))
        yield text


def mutated(choose, text):
    for _ in range(choose.choice([1, 1, 2])):
        at = choose.randrange(len(text) + 1)
        text = choose.choice([text[:at] + text[at + 1:], text[:at] + choose.choice(NOISE) + text[at:],
                              text[:at] + choose.choice(NOISE) + text[at + 1:],
                              text[:at] + text[max(0, at - 3):]])
    return text


def generate(count, seed):
    choose = random.Random(seed)
    out = []
    for text in composed(choose):
        out.append(text)
        if len(out) < 700:  # the lists themselves, before anything is changed at random
            continue
        out.append(mutated(choose, choose.choice(out)))
        if len(out) >= count:
            return list(dict.fromkeys(out))
    raise AssertionError("not reached")


def accepted(texts, grammar="0.1"):
    """Those that capgate accepts, with some values of the variables."""
    out = set()
    for values in VALUES:
        out |= _accepted(texts, grammar, values)
    return out


def _accepted(texts, grammar, values):
    # One string a line: the line of a diagnostic says which is meant. The first one is refused, so
    # that what the strings mean together is never looked at.
    lines = ["{\"name\": \"x\", \"version\": \"1\", \"grammar\": \"" + grammar + "\", \"tools\": [",
             "{\"name\": \"x\", \"capabilities\": [", "\"no kind\""]
    lines += ["," + json.dumps(text) for text in texts]
    words = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
    done = launch.capgate("check", "-", "--json", *words, text="\n".join(lines) + "]}]}", env={})
    refused = {each["line"] for each in json.loads(done.stdout)["diagnostics"]}
    if 3 not in refused:
        raise AssertionError(done.stderr[:2000])
    return {text for number, text in enumerate(texts, 4) if number not in refused}
