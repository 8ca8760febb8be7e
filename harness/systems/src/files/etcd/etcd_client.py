"""A client of etcd that speaks lines, over etcd's JSON gateway: one request, one answer, nothing tried again.

What matters is the word that ends each operation:
  ok    the server said that it is done.
  fail  it CERTAINLY had no effect: the request never left, or the server refused it before it proposed it.
  info  nobody knows. When in doubt, this one: a wrong fail accuses etcd of what the client did.
"""
import base64
import http.client
import json
import os
import select
import socket
import sys
import threading
import time

# What etcd says before it proposes anything. Everything else that it says of a failure may come after the
# proposal: "etcdserver: request timed out" does, and the proposal may still be committed.
REFUSED = ("etcdserver: too many requests", "etcdserver: request is too large")


class NotSent(Exception):
    """The request never left this process."""


class Refused(Exception):
    """The server said no, and proposed nothing."""


class Unknown(Exception):
    """The server does not know either."""


class Gone(Exception):
    """What a watch asks for is compacted."""


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
        self.http.request("POST", "/v3/" + path, json.dumps(body), {"Content-Type": "application/json"})
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
    kvs = connection.ask(seconds, "kv/range", {"key": b64(key)}).get("kvs", [])
    return (plain(kvs[0]), kvs[0]["mod_revision"]) if kvs else (None, "0")


def read(connection, seconds, of, key):
    if of == "set":
        # An element is a key below the set's: `/` and what comes after it in the order of bytes.
        answer = connection.ask(seconds, "kv/range", {"key": b64(f"{key}/"), "range_end": b64(f"{key}0")})
        return [int(plain(kv)) for kv in answer.get("kvs", [])]
    value, _ = found(connection, seconds, key)
    if of == "list":
        return json.loads(value) if value else []
    return None if value is None else int(value)


def compare_and_put(connection, seconds, key, compare, value):
    compare = {"key": b64(key), "result": "EQUAL", **compare}
    success = [{"request_put": {"key": b64(key), "value": b64(value)}}]
    return connection.ask(seconds, "kv/txn", {"compare": [compare], "success": success}).get("succeeded", False)


def transaction(connection, seconds, micros):
    """Reads all lists in one request, so that they are of one revision, and puts the longer ones back if none of
    them has changed since. What only reads is over with the first request."""
    keys = sorted({key for _, key, _ in micros})
    ranges = [{"request_range": {"key": b64(f"lists{key}")}} for key in keys]
    lists, revisions, told, changed = {}, {}, [], set()
    for key, part in zip(keys, connection.ask(seconds, "kv/txn", {"success": ranges})["responses"]):
        kvs = part["response_range"].get("kvs", [])
        lists[key], revisions[key] = (json.loads(plain(kvs[0])), kvs[0]["mod_revision"]) if kvs else ([], "0")
    for f, key, value in micros:
        if f == "append":
            lists[key] = [*lists[key], value]
            changed.add(key)
        told.append([f, key, value if f == "append" else lists[key]])
    if changed:
        # Of lists that were only read too: where they are left out, two may each read what the other one writes.
        same = [{"key": b64(f"lists{key}"), "target": "MOD", "result": "EQUAL", "mod_revision": revisions[key]}
                for key in keys]
        puts = [{"request_put": {"key": b64(f"lists{key}"), "value": b64(json.dumps(lists[key]))}}
                for key in sorted(changed)]
        if not connection.ask(seconds, "kv/txn", {"compare": same, "success": puts}).get("succeeded", False):
            return {"type": "fail", "error": "somebody was faster"}
    return {"type": "ok", "value": told}


class Lock:
    """A lock of etcd's, held by a lease that a thread keeps alive. Of the whole process there is one at most."""

    # Where a client says until when it is certain (ETCD_LOCK=certain), it must not write later than that. One
    # that does not say so holds for as long as it acts as if it did.
    SAYS_UNTIL = os.environ.get("ETCD_LOCK") == "certain"

    def __init__(self, lease, asked):
        self.lease = lease
        self.gone = threading.Event()
        self.ttl = lease_seconds()
        self.until = asked + self.ttl
        threading.Thread(target=self.keep_alive, daemon=True).start()

    def keep_alive(self):
        members = [at.split("=")[1] for at in os.environ["HARNESS_MEMBERS"].split(",")]
        while not self.gone.wait(self.ttl / 6):
            # Each member in turn: one of them may be dead.
            members.append(members.pop(0))
            asked = time.monotonic()
            try:
                connection = Connection(members[0], self.ttl / 6)
                answer = connection.ask(self.ttl / 6, "lease/keepalive", {"ID": self.lease})
                connection.close()
                if "TTL" not in answer["result"]:
                    self.gone.set()
                    return
                # The server counts from when it was asked, and that was later than this.
                self.until = asked + self.ttl
            except Exception:
                # Whatever it is, it is asked anew, for as long as the lease may live.
                pass

    def is_lost(self):
        # This is no safety: whoever is stopped behind this look writes all the same. The token is.
        return self.gone.is_set() or self.SAYS_UNTIL and time.monotonic() >= self.until

    def told(self):
        return {"until_ns": int(self.until * 1e9)} if self.SAYS_UNTIL else {}


def lease_seconds():
    """How long the lease is to outlive this process's silence. etcd counts in whole seconds."""
    return max(1, int(os.environ.get("HARNESS_SESSION_TIMEOUT_MS", "4000")) // 1000)


def acquire(connection, seconds, key, member):
    deadline = time.monotonic() + seconds
    lease = connection.ask(seconds, "lease/grant", {"TTL": str(lease_seconds())})["ID"]
    asked = time.monotonic()
    waiting = Connection(member, seconds)
    try:
        answer = waiting.ask(max(0.01, deadline - asked), "lock/lock", {"name": b64(key), "lease": lease})
        # The revision is larger than that of every earlier holder: it is the token.
        held = Lock(lease, asked)
        return held, {"type": "ok", "value": int(answer["header"]["revision"]), **held.told()}
    except (NotSent, Refused):
        raise
    except Exception:
        # Without the lease it holds nothing, and stands in no line.
        connection.ask(1, "lease/revoke", {"ID": lease})
        return None, {"type": "fail", "error": "timeout"}
    finally:
        waiting.close()


def store(held, seconds, key, token, value):
    """Writes to the bench's own store, which minds the token."""
    if held is None or held.is_lost():
        return {"type": "fail", "error": "lost"}
    host, port = os.environ["HARNESS_STORE"].rsplit(":", 1)
    with socket.create_connection((host, int(port)), seconds) as stream:
        stream.sendall(json.dumps({"key": key, "token": token, "value": value}).encode() + b"\n")
        return {"type": "ok", "value": json.loads(stream.makefile().readline()), **held.told()}


def release(connection, seconds, held):
    held.gone.set()
    connection.ask(seconds, "lease/revoke", {"ID": held.lease})
    return {"type": "ok"}


def on_lock(connections, seconds, request):
    f, value, member = request["f"], request["value"], request["member"]
    # Of the client's whole life, not of a member: the lock stays where it is when the client goes elsewhere.
    held, connection = connections.get("lock"), connections[member]
    if f == "acquire":
        if held is not None:
            # Whoever acquires has given up what it had, or was told that it had lost it.
            held.gone.set()
        connections["lock"], answer = acquire(connection, seconds, f"lock{request['key']}", member)
        return answer
    if f == "store":
        return store(held, seconds, request["key"], value[0], value[1])
    if f == "release":
        if held is None or held.is_lost():
            return {"type": "fail", "error": "lost"}
        return release(connection, seconds, connections.pop("lock"))
    # Who holds it or stands in line: keys below its name.
    prefix = f"lock{request['key']}"
    answer = connection.ask(seconds, "kv/range", {"key": b64(f"{prefix}/"), "range_end": b64(f"{prefix}0")})
    return {"type": "ok", "value": [int(kv["create_revision"]) for kv in answer.get("kvs", [])]}


class Watch:
    """A stream of the changes of one key, behind a revision. It stays open from one request to the next, for as
    long as these go on from where it is."""

    def __init__(self, member, seconds, key, revision):
        self.revision, self.heard, self.is_created = revision, b"", False
        host, port = member.rsplit(":", 1)
        try:
            self.socket = socket.create_connection((host, int(port)), seconds)
        except OSError as error:
            raise NotSent from error
        body = json.dumps({"create_request": {"key": b64(key), "start_revision": str(revision + 1)}}).encode()
        # To a client of HTTP/1.0 the gateway writes a line of JSON for each message, and no chunks.
        head = f"POST /v3/watch HTTP/1.0\r\nHost: {member}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.socket.sendall(head.encode() + body)
        self.until = b"\r\n\r\n"

    def lines(self, seconds):
        """What came within so long. The end of the stream is an error."""
        if not select.select([self.socket], [], [], max(0.0, seconds))[0]:
            return []
        part = self.socket.recv(1 << 16)
        if not part:
            raise OSError("the stream ended")
        self.heard += part
        if self.until != b"\n":
            head, found, rest = self.heard.partition(self.until)
            if not found:
                return []
            if b" 200 " not in head.split(b"\r\n")[0]:
                raise OSError(repr(head))
            self.heard, self.until = rest, b"\n"
        *lines, self.heard = self.heard.split(b"\n")
        return [json.loads(line) for line in lines if line.strip()]

    def changes(self, deadline, patience):
        """Waits for changes until the deadline, and tells all that is there. That nothing changed is told only
        where the member has said that it watches: until then nothing is known."""
        changes = []
        while not changes:
            now = time.monotonic()
            if now >= deadline and (self.is_created or now >= patience):
                break
            for line in self.lines((deadline if self.is_created else patience) - now):
                if "error" in line:
                    raise OSError(str(line["error"]))
                result = line["result"]
                if result.get("canceled"):
                    raise Gone if int(result.get("compact_revision", 0)) > 0 else OSError(str(result))
                self.is_created = self.is_created or result.get("created", False)
                for event in result.get("events", []):
                    changes.append([int(plain(event["kv"])), int(event["kv"]["version"])])
                    # Not the revision in the header: what changed up to there may be on its way.
                    self.revision = int(event["kv"]["mod_revision"])
        if not self.is_created:
            raise Unknown("the member has not said that it watches")
        return changes

    def close(self):
        self.socket.close()


def watch(connections, seconds, request):
    """Changes of a key behind a revision: etcd keeps them until they are compacted, so that any member can go
    on from there."""
    member, key, revision = request["member"], f"{request['of']}{request['key']}", request["value"]
    began = time.monotonic()
    if revision is None:
        # It begins with what comes after this revision.
        answer = connections[member].ask(seconds, "kv/range", {"key": b64(key)})
        return {"type": "ok", "value": [], "position": int(answer["header"]["revision"])}
    stream = connections.pop((member, key), None)
    try:
        if stream is not None and stream.revision != revision:
            stream.close()
            stream = None
        stream = stream or Watch(member, seconds, key, revision)
        changes = stream.changes(began + request["wait_ms"] / 1000, began + seconds * 0.9)
    except Gone:
        stream.close()
        return {"type": "fail", "error": "gone"}
    except NotSent:
        raise
    except Exception as error:
        # Whatever was on its way comes again: the next request asks from the same revision.
        if stream is not None:
            stream.close()
        return {"type": "info", "error": repr(error)}
    connections[member, key] = stream
    return {"type": "ok", "value": changes, "position": stream.revision}


def perform(connection, seconds, request):
    f, of, value = request["f"], request["of"], request["value"]
    if f == "txn":
        return transaction(connection, seconds, value)
    key = f"{of}{request['key']}"
    if f == "read":
        return {"type": "ok", "value": read(connection, seconds, of, key)}
    if f == "write":
        connection.ask(seconds, "kv/put", {"key": b64(key), "value": b64(value)})
    elif f == "cas":
        if not compare_and_put(connection, seconds, key, {"target": "VALUE", "value": b64(value[0])}, value[1]):
            # An observation: the value was another one at that moment.
            return {"type": "fail", "error": "mismatch"}
    elif f == "add":
        connection.ask(seconds, "kv/put", {"key": b64(f"{key}/{value}"), "value": b64(value)})
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


def dropped(connections, member):
    """The next request has a connection of its own."""
    if member in connections:
        connections.pop(member).close()


def answer(connections, request):
    member, seconds = request["member"], request["timeout_ms"] / 1000
    try:
        if member not in connections:
            connections[member] = Connection(member, seconds)
        if request["f"] == "watch":
            return watch(connections, seconds, request)
        if request.get("of") == "lock":
            return on_lock(connections, seconds, request)
        return perform(connections[member], seconds, request)
    except NotSent:
        dropped(connections, member)
        return {"type": "fail", "error": "not-sent"}
    except Refused as error:
        return {"type": "fail", "error": str(error)}
    except Unknown as error:
        # The answer came, so the connection is good for the next request.
        return {"type": "info", "error": str(error)}
    except Exception as error:
        # Whatever it is, no answer was understood, and the request may have arrived. And a connection with an answer
        # on its way is of no more use: the next request would be given that answer.
        dropped(connections, member)
        return {"type": "info", "error": repr(error)}


def main():
    connections = {}
    functions = ["read", "write", "cas", "add", "append", "txn", "acquire", "store", "release", "watch"]
    print(json.dumps({"f": "hello", "protocol": 1, "functions": functions}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps({"id": request["id"], **answer(connections, request)}), flush=True)


main()
