#!/usr/bin/env python3
"""compile.py MANIFEST [TARGET]: prints the artifact's words for the command line."""

import pathlib
import sys

import capgate

path, *rest = sys.argv[1:]
try:
    artifact = capgate.compile(pathlib.Path(path).read_text(), path, *rest)
except capgate.Refused as refused:
    sys.exit(str(refused))
print("\n".join(artifact["argv"]))
