"""fetch.py CA URL...: one line for each URL, its status or its error, by urllib."""

import ssl
import sys
import urllib.error
import urllib.request

context = ssl.create_default_context(cafile=sys.argv[1])
for url in sys.argv[2:]:
    try:
        with urllib.request.urlopen(url, timeout=25, context=context) as response:
            response.read()
            print(url, response.status, flush=True)
    except urllib.error.HTTPError as error:
        print(url, error.code, flush=True)
    except OSError as error:
        print(url, "error", getattr(error, "reason", error), flush=True)
