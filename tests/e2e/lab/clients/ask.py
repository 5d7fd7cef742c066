"""ask.py urllib|requests URL...: asks with the token of the environment; "-" reads URLs from stdin.

One JSON value for each: {"status": 200, "body": "..."} or {"error": "..."}. Nothing says what to
trust: that is what is tested.
"""

import json
import os
import sys
import urllib.error
import urllib.request

FIELDS = {"Authorization": f"Bearer {os.environ['TOKEN']}"}


def by_urllib(url):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=FIELDS),
                                    timeout=25) as response:
            return response.status, response.read().decode("latin-1")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode("latin-1")


def by_requests(url):
    import requests  # pylint: disable=import-outside-toplevel
    response = requests.get(url, headers=FIELDS, timeout=25)
    return response.status_code, response.text


def main():
    how = {"urllib": by_urllib, "requests": by_requests}[sys.argv[1]]
    for url in sys.stdin if sys.argv[2] == "-" else sys.argv[2:]:
        try:
            status, body = how(url.strip())
            print(json.dumps({"status": status, "body": body}), flush=True)
        except OSError as error:
            print(json.dumps({"error": str(error)}), flush=True)


main()
