"""A client of etcd that speaks lines, over etcd's JSON gateway: one request, one answer, nothing tried again.

What matters is the word that ends each operation:
  ok    the server said that it is done.
  fail  it CERTAINLY had no effect: the request never left, or the server refused it before it proposed it.
  info  nobody knows. When in doubt, this one: a wrong fail accuses etcd of what the client did.
"""
import base64
import http.client
import json
import sys

# What etcd says before it proposes anything. Everything else that it says of a failure may come after the
# proposal: "etcdserver: request timed out" does, and the proposal may still be committed.
REFUSED = ("etcdserver: too many requests", "etcdserver: request is too large")


class NotSent(Exception):
    """The request never left this process."""


class Refused(Exception):
    """The server said no, and proposed nothing."""


class Unknown(Exception):
    """The server does not know either."""


def b64(text):
    return base64.b64encode(str(text).encode()).decode()


def plain(kv):
    return base64.b64decode(kv.get("value", "")).decode()


class Connection:
    def __init__(self, member, seconds):
        self.http = http.client.HTTPConnection(member, timeout=seconds)
        # http.client connects again by itself, which would be another try.
        self.http.auto_open = 0
        try:
            self.http.connect()
        except OSError as error:
            raise NotSent from error

    def ask(self, seconds, path, body):
        if self.http.sock is None:
            # Its last answer said that it is the last one here.
            raise NotSent
        self.http.sock.settimeout(seconds)
        self.http.request("POST", "/v3/kv/" + path, json.dumps(body), {"Content-Type": "application/json"})
        response = self.http.getresponse()
        answer = json.loads(response.read())
        if response.status == 200:
            return answer
        words = answer.get("error") or answer.get("message") or str(answer)
        raise (Refused if words in REFUSED else Unknown)(words)

    def close(self):
        self.http.close()


def found(connection, seconds, key):
    """The key and its revision. A range is linearizable unless it is asked to be serializable."""
    kvs = connection.ask(seconds, "range", {"key": b64(key)}).get("kvs", [])
    return (plain(kvs[0]), kvs[0]["mod_revision"]) if kvs else (None, "0")


def read(connection, seconds, of, key):
    if of == "set":
        # An element is a key below the set's: `/` and what comes after it in the order of bytes.
        answer = connection.ask(seconds, "range", {"key": b64(f"{key}/"), "range_end": b64(f"{key}0")})
        return [int(plain(kv)) for kv in answer.get("kvs", [])]
    value, _ = found(connection, seconds, key)
    if of == "list":
        return json.loads(value) if value else []
    return None if value is None else int(value)


def compare_and_put(connection, seconds, key, compare, value):
    compare = {"key": b64(key), "result": "EQUAL", **compare}
    success = [{"request_put": {"key": b64(key), "value": b64(value)}}]
    return connection.ask(seconds, "txn", {"compare": [compare], "success": success}).get("succeeded", False)


def perform(connection, seconds, request):
    f, of, value = request["f"], request["of"], request["value"]
    key = f"{of}{request['key']}"
    if f == "read":
        return {"type": "ok", "value": read(connection, seconds, of, key)}
    if f == "write":
        connection.ask(seconds, "put", {"key": b64(key), "value": b64(value)})
    elif f == "cas":
        if not compare_and_put(connection, seconds, key, {"target": "VALUE", "value": b64(value[0])}, value[1]):
            # An observation: the value was another one at that moment.
            return {"type": "fail", "error": "mismatch"}
    elif f == "add":
        connection.ask(seconds, "put", {"key": b64(f"{key}/{value}"), "value": b64(value)})
    elif f == "append":
        # Read, and put back if nobody was faster: of the read there is nothing to be told.
        text, revision = found(connection, seconds, key)
        longer = json.dumps((json.loads(text) if text else []) + [value])
        same = {"target": "MOD", "mod_revision": revision}
        if not compare_and_put(connection, seconds, key, same, longer):
            return {"type": "fail", "error": "somebody was faster"}
    else:
        return {"type": "fail", "error": "unsupported"}
    return {"type": "ok"}


def answer(connections, request):
    member, seconds = request["member"], request["timeout_ms"] / 1000
    try:
        if member not in connections:
            connections[member] = Connection(member, seconds)
        return perform(connections[member], seconds, request)
    except NotSent:
        if member in connections:
            connections.pop(member).close()
        return {"type": "fail", "error": "not-sent"}
    except Refused as error:
        return {"type": "fail", "error": str(error)}
    except Unknown as error:
        # The answer came, so the connection is good for the next request.
        return {"type": "info", "error": str(error)}
    except (OSError, http.client.HTTPException, ValueError) as error:
        # The request may have arrived. And a connection with an answer on its way is of no more use: the next
        # request would be given that answer.
        connections.pop(member).close()
        return {"type": "info", "error": repr(error)}


def main():
    connections = {}
    functions = ["read", "write", "cas", "add", "append"]
    print(json.dumps({"f": "hello", "protocol": 1, "functions": functions}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps({"id": request["id"], **answer(connections, request)}), flush=True)


main()
