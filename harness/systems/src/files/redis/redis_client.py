"""A client of Redis that speaks lines: one request, one answer, nothing tried again.

What matters is the word that ends each operation:
  ok    the server said that it is done.
  fail  it CERTAINLY had no effect: the request never left, or the server refused it.
  info  nobody knows. When in doubt, this one: a wrong fail accuses Redis of what the client did.
"""
import json
import os
import socket
import sys

# Compare and set by value, in one step on the server.
CAS = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end redis.call('SET', KEYS[1], ARGV[2]) return 1"


# How many replicas must have a write before it is called done.
WAIT = int(os.environ.get("WAIT", "0"))


class NotSent(Exception):
    """The request never left this process."""


class Refused(Exception):
    """The server said no."""


class Unknown(Exception):
    """It is done, and may be undone: too few replicas have it."""


class Connection:
    def __init__(self, member, seconds):
        host, port = member.rsplit(":", 1)
        try:
            self.socket = socket.create_connection((host, int(port)), timeout=seconds)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.file = self.socket.makefile("rb")
        except OSError as error:
            raise NotSent from error

    def ask(self, seconds, *words):
        self.socket.settimeout(seconds)
        words = [str(word).encode() for word in words]
        request = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        self.socket.sendall(request)
        return self.reply()

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            # READONLY (a replica), MASTERDOWN, NOREPLICAS, LOADING: Redis decided before it did anything.
            raise Refused(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest
        if kind == b"$":
            if rest == b"-1":
                return None
            data = self.file.read(int(rest) + 2)
            if len(data) != int(rest) + 2:
                raise EOFError
            return data[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        raise ValueError(line)

    def close(self):
        self.socket.close()


def read(connection, seconds, of, key):
    if of == "set":
        return [int(one) for one in connection.ask(seconds, "SMEMBERS", key)]
    if of in ("list", "queue"):
        return [int(one) for one in connection.ask(seconds, "LRANGE", key, 0, -1)]
    found = connection.ask(seconds, "GET", key)
    # None, where there was a value before, is a lost write: say what the server says.
    return None if found is None else int(found)


def offset(identifier):
    return int(identifier.split(b"-")[1])


def poll(connection, seconds, key, start, most):
    found = connection.ask(seconds, "XRANGE", f"log{key}", f"0-{start}", "+", "COUNT", most)
    return [[offset(identifier), int(fields[1])] for identifier, fields in found]


def perform(connection, seconds, request):
    f, key, value = request["f"], request["key"], request["value"]
    if f == "read":
        return {"type": "ok", "value": read(connection, seconds, request["of"], key)}
    if f == "poll":
        return {"type": "ok", "value": poll(connection, seconds, key, *value)}
    done = change(connection, seconds, f, key, value)
    if WAIT and done["type"] == "ok":
        try:
            # Half of the time that is there: the answer must come in time as well.
            replicas = connection.ask(seconds, "WAIT", WAIT, int(seconds * 500))
        except Refused as error:
            # A primary that is a replica by now. Not a fail: it has done what it was asked before.
            raise Unknown(str(error)) from error
        if replicas < WAIT:
            raise Unknown(f"{replicas} replicas have it")
    return done


def change(connection, seconds, f, key, value):
    if f == "write":
        connection.ask(seconds, "SET", key, value)
    elif f == "cas":
        if connection.ask(seconds, "EVAL", CAS, 1, key, value[0], value[1]) == 0:
            # An observation: the value was another one at that moment.
            return {"type": "fail", "error": "mismatch"}
    elif f == "add":
        connection.ask(seconds, "SADD", key, value)
    elif f in ("append", "enqueue"):
        connection.ask(seconds, "RPUSH", key, value)
    elif f == "dequeue":
        # Taken for good: there is nothing to be acknowledged. None, where nothing is there.
        found = connection.ask(seconds, "LPOP", key)
        return {"type": "ok", "value": None if found is None else int(found)}
    elif f == "send":
        # A record's id is 0-1, 0-2, and so on: what stands behind the 0 is its offset.
        return {"type": "ok", "value": offset(connection.ask(seconds, "XADD", f"log{key}", "0-*", "r", value))}
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
        return perform(connections[member], seconds, request)
    except NotSent:
        return {"type": "fail", "error": "not-sent"}
    except Refused as error:
        return {"type": "fail", "error": str(error)}
    except Unknown as error:
        return {"type": "info", "error": str(error)}
    except Exception as error:
        # Whatever it is, no answer was understood, and the request may have arrived. And a connection with an answer
        # on its way is of no more use: the next request would be given that answer.
        dropped(connections, member)
        return {"type": "info", "error": repr(error)}


def main():
    connections = {}
    functions = ["read", "write", "cas", "add", "append", "enqueue", "dequeue", "send", "poll"]
    print(json.dumps({"f": "hello", "protocol": 1, "functions": functions}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        # Whoever is asked answers for itself: nobody sends this client on.
        told = {"id": request["id"], "by": request["member"], **answer(connections, request)}
        print(json.dumps(told), flush=True)


main()
