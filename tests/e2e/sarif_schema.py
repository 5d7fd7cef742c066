"""The official JSON schema of SARIF 2.1.0, out of the npm package that ships it, kept in .deps/sarif."""

import base64
import fcntl
import hashlib
import json
import os
import subprocess
import tarfile

import jsonschema

import launch

PLACE = os.path.join(launch.ROOT, ".deps/sarif")
PACKAGE = "@microsoft/jest-sarif@1.0.0-beta.0"
ARCHIVE = "microsoft-jest-sarif-1.0.0-beta.0.tgz"
MEMBER = "package/lib/schemas/sarif-2.1.0-rtm.5.json"
SHA512 = ("A1fOhPd6Ic5iDk4F9YPw1qNB4XF+7+IviR7xl8r2F6Qz"
          "Qkx5cpY9LsGk2rExiFIEcBbjpVnSmwWGBukASkiQ9A==")
INSTALL_SECONDS = 120


def validator():
    """Says whether a log is well-formed SARIF."""
    os.makedirs(PLACE, exist_ok=True)
    archive = os.path.join(PLACE, ARCHIVE)
    with open(os.path.join(PLACE, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(archive):
            subprocess.run(["npm", "pack", "--ignore-scripts", PACKAGE], cwd=PLACE, check=True,
                           capture_output=True, timeout=INSTALL_SECONDS)
    with open(archive, "rb") as file:
        digest = hashlib.sha512(file.read()).digest()
    if base64.b64encode(digest).decode() != SHA512:
        raise AssertionError(f"{archive} is not the package that was reviewed")
    with tarfile.open(archive) as package:
        schema = json.load(package.extractfile(MEMBER))
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)
