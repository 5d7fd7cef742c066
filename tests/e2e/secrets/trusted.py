"""trusted.py PORT...: asks each server at localhost, as strictly as Python 3.13 does."""

import ssl
import sys
import urllib.request

context = ssl.create_default_context()
context.verify_flags |= ssl.VERIFY_X509_STRICT
for port in sys.argv[1:]:
    try:
        urllib.request.urlopen(f"https://localhost:{port}/", context=context).read()
    except OSError:
        pass
