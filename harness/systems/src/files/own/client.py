"""A client that speaks lines: one request, one answer, nothing tried again.

What matters is the word that ends each operation:
  ok    the server said that it is done.
  fail  it CERTAINLY had no effect: the request never left ("not-sent"), or the server refused it.
  info  nobody knows. When in doubt, this one: a wrong fail accuses the server of what the client did.
"""
import json
import sys
import urllib.error
import urllib.request


def perform(request):
    """Write your own here. This one speaks to http://MEMBER/KEY: GET, and PUT of a decimal number."""
    url = "http://%s/%d" % (request["member"], request["key"])
    seconds = request["timeout_ms"] / 1000
    if request["f"] == "read":
        with urllib.request.urlopen(url, timeout=seconds) as response:
            body = response.read()
            # null, where nothing is there.
            return {"type": "ok", "value": int(body) if body else None}
    if request["f"] == "write":
        data = str(request["value"]).encode()
        with urllib.request.urlopen(urllib.request.Request(url, data, method="PUT"), timeout=seconds):
            return {"type": "ok"}
    return {"type": "fail", "error": "unsupported"}


def answer(request):
    try:
        return perform(request)
    except urllib.error.HTTPError as error:
        # Is this status a promise that nothing happened? 4xx mostly is; a 5xx is not.
        if error.code < 500:
            return {"type": "fail", "error": str(error)}
        return {"type": "info", "error": str(error)}
    except urllib.error.URLError as error:
        if isinstance(error.reason, ConnectionRefusedError):
            return {"type": "fail", "error": "not-sent"}
        return {"type": "info", "error": repr(error)}
    except Exception as error:
        # Whatever it is, nobody knows what became of the request. And the client lives on.
        return {"type": "info", "error": repr(error)}


def main():
    # What it can do: each function that perform has. harness/docs/client-protocol.md lists those of every workload.
    print(json.dumps({"f": "hello", "protocol": 1, "functions": ["read", "write"]}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps({"id": request["id"], **answer(request)}), flush=True)


main()
