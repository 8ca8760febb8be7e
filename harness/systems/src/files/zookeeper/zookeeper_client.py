"""A client of ZooKeeper that speaks lines, over ZooKeeper's own protocol: nothing has to be installed, and nothing
is tried again. A library (kazoo, ...) does the same, once its retries are switched off.

What matters is the word that ends each operation:
  ok    the server said that it is done.
  fail  it CERTAINLY had no effect: the request never left, or the server refused it.
  info  nobody knows. When in doubt, this one: a wrong fail accuses ZooKeeper of what the client did.
"""
import json
import select
import socket
import struct
import sys
import time

CREATE, GET_DATA, SET_DATA, GET_CHILDREN, SYNC, CHECK, MULTI = 1, 4, 5, 8, 9, 13, 14
# What a server says of a request that it decided to have no effect. Of other errors nobody knows.
NO_NODE, BAD_VERSION, NODE_EXISTS, SESSION_EXPIRED, SESSION_MOVED = -101, -103, -110, -112, -118
REFUSED = (NO_NODE, BAD_VERSION, NODE_EXISTS, SESSION_EXPIRED, SESSION_MOVED)
ANY_VERSION = -1
# A session may be silent for so long. There are no pings: whoever was silent for longer begins another session.
SESSION_MS = 30_000
# Everybody may do everything, and the node is no ephemeral one.
OPEN_TO_ALL = struct.pack("!iii", 1, 31, 5) + b"world" + struct.pack("!i", 6) + b"anyone" + struct.pack("!i", 0)


class NotSent(Exception):
    """The request never left this process."""


class Refused(Exception):
    """The server said no, and changed nothing."""

    def __init__(self, code):
        super().__init__(f"error {code}")
        self.code = code


class Unknown(Exception):
    """The server does not know either."""


def text(words):
    return struct.pack("!i", len(str(words))) + str(words).encode()


class Connection:
    """A connection, and a session of its own. The session is never taken to another member."""

    def __init__(self, member, seconds):
        host, port = member.rsplit(":", 1)
        self.until, self.number = time.monotonic() + seconds, 0
        try:
            self.socket = socket.create_connection((host, int(port)), timeout=seconds)
        except OSError as error:
            raise NotSent from error
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.file = self.socket.makefile("rb")
            # Version, the last zxid that was seen, time-out, session, password, not read-only.
            self.send([struct.pack("!iqiqi", 0, 0, SESSION_MS, 0, 16) + bytes(17)])
            self.frame()
        except Exception as error:
            # A member that serves nobody closes the connection. No request has left.
            self.close()
            raise NotSent from error

    def is_over(self):
        """Whether anything came that nobody asked for, as the end does. Then it is of no more use."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def ask(self, seconds, *requests):
        """The answers to these, which are sent at once and done in their order."""
        self.until = time.monotonic() + seconds
        first = self.number + 1
        self.number += len(requests)
        self.send([struct.pack("!ii", first + i, kind) + body for i, (kind, body) in enumerate(requests)])
        answers = [self.answer(number) for number in range(first, self.number + 1)]
        for code, _ in answers:
            if code in REFUSED:
                raise Refused(code)
            if code != 0:
                raise Unknown(f"error {code}")
        return [body for _, body in answers]

    def send(self, bodies):
        self.socket.sendall(b"".join(struct.pack("!i", len(body)) + body for body in bodies))

    def answer(self, number):
        frame = self.frame()
        answered, _, code = struct.unpack_from("!iqi", frame)
        if answered != number:
            raise ValueError(f"{answered} was answered, and {number} asked")
        return code, frame[16:]

    def frame(self):
        return self.exactly(struct.unpack("!i", self.exactly(4))[0])

    def exactly(self, count):
        self.socket.settimeout(max(0.001, self.until - time.monotonic()))
        data = self.file.read(count)
        if len(data) != count:
            raise EOFError
        return data

    def close(self):
        self.socket.close()


def version_of(stat):
    """czxid, mzxid, ctime and mtime come before it."""
    return struct.unpack_from("!i", stat, 32)[0]


def found(ask, path, *before):
    """The node's data and its version; None and None where there is no node."""
    try:
        body = ask(*before, (GET_DATA, text(path) + b"\0"))[-1]
    except Refused as error:
        if error.code != NO_NODE:
            raise
        return None, None
    length = max(0, struct.unpack_from("!i", body)[0])
    return body[4:4 + length].decode(), version_of(body[4 + length:])


def create(ask, path, value):
    ask((CREATE, text(path) + text(value) + OPEN_TO_ALL))


def put(ask, path, value, version):
    return version_of(ask((SET_DATA, text(path) + text(value) + struct.pack("!i", version)))[0])


def children(ask, path):
    try:
        body = ask((SYNC, text(path)), (GET_CHILDREN, text(path) + b"\0"))[-1]
    except Refused as error:
        if error.code != NO_NODE:
            raise
        return []
    names, at = [], 4
    for _ in range(struct.unpack_from("!i", body)[0]):
        length = struct.unpack_from("!i", body, at)[0]
        names.append(int(body[at + 4:at + 4 + length]))
        at += 4 + length
    return names


def read(ask, of, path):
    # A member answers reads itself, from what it has. The sync before it has it catch up with its leader first,
    # which makes the answer a fresh one unless that leader is deposed and does not know it yet.
    if of == "set":
        return {"value": children(ask, path)}
    value, version = found(ask, path, (SYNC, text(path)))
    if of == "list":
        return {"value": json.loads(value) if value else []}
    return {"value": None} if value is None else {"value": int(value), "version": version}


def write(ask, path, value):
    try:
        return put(ask, path, value, ANY_VERSION)
    except Refused as error:
        if error.code != NO_NODE:
            raise
    # The first one makes it. That is no other try: the server said that there was nothing to be written to.
    create(ask, path, value)
    return 0


def add(ask, path, value):
    try:
        create(ask, f"{path}/{value}", "")
    except Refused as error:
        if error.code != NO_NODE:
            raise
        try:
            create(ask, path, "")
        except Refused as error:
            if error.code != NODE_EXISTS:
                raise
        create(ask, f"{path}/{value}", "")


def transaction(ask, micros):
    """Reads each list, and puts the longer ones back in a multi, which does all or nothing and compares the version
    of every list that was read. So what was read at different moments, from a member that may be behind, is what was
    there at one moment; and what only reads is a multi as well."""
    lists, versions, told, parts = {}, {}, [], []
    for key in sorted({key for _, key, _ in micros}):
        now, versions[key] = found(ask, f"/lists{key}")
        lists[key] = json.loads(now) if now else []
    before = dict(lists)
    for f, key, value in micros:
        if f == "append":
            lists[key] = [*lists[key], value]
        told.append([f, key, value if f == "append" else lists[key]])
    for key, version in versions.items():
        path = text(f"/lists{key}")
        if version is None:
            # That a node is not there can't be compared. It is made, be it empty, and refused where it is there.
            parts.append((CREATE, path + text(json.dumps(lists[key])) + OPEN_TO_ALL))
        elif lists[key] == before[key]:
            parts.append((CHECK, path + struct.pack("!i", version)))
        else:
            parts.append((SET_DATA, path + text(json.dumps(lists[key])) + struct.pack("!i", version)))
    body = b"".join(struct.pack("!i?i", kind, False, -1) + part for kind, part in parts)
    results = ask((MULTI, body + struct.pack("!i?i", -1, True, -1)))[0]
    if struct.unpack_from("!i", results)[0] == -1:
        # Each part has a code: 0 before the one that was refused, and -2 behind it.
        codes = [struct.unpack_from("!i", results, 9 + 13 * at)[0] for at in range(len(parts))]
        raise Refused(next(code for code in codes if code != 0))
    return {"value": told}


def perform(ask, request):
    f, of, value = request["f"], request["of"], request["value"]
    path = f"/{of}{request['key']}"
    more = {}
    if f == "txn":
        more = transaction(ask, value)
    elif f == "read":
        more = read(ask, of, path)
    elif f == "write":
        more = {"version": write(ask, path, value)}
    elif f == "cas":
        # ZooKeeper compares versions and no values. So there is a read first, of which there is nothing to be told:
        # it may be stale, and then the version is refused.
        now, version = found(ask, path)
        if now != str(value[0]):
            return {"type": "fail", "error": "another value was read"}
        more = {"version": put(ask, path, value[1], version)}
    elif f == "add":
        add(ask, path, value)
    elif f == "append":
        now, version = found(ask, path)
        longer = json.dumps((json.loads(now) if now else []) + [value])
        if version is None:
            create(ask, path, longer)
        else:
            put(ask, path, longer, version)
    else:
        return {"type": "fail", "error": "unsupported"}
    return {"type": "ok", **more}


def connected(connections, member, seconds):
    """The connection to this member. One that ended while nobody asked anything is replaced: that is no other try,
    as nothing was sent."""
    if member in connections and connections[member].is_over():
        connections.pop(member).close()
    if member not in connections:
        connections[member] = Connection(member, seconds)
    return connections[member]


def dropped(connections, member):
    """The next request has a connection of its own."""
    if member in connections:
        connections.pop(member).close()


def answer(connections, request):
    member, seconds = request.get("member"), request["timeout_ms"] / 1000
    if "of" not in request:
        return {"type": "fail", "error": "unsupported"}
    until = time.monotonic() + seconds
    try:
        connection = connected(connections, member, seconds)
        return perform(lambda *requests: connection.ask(until - time.monotonic(), *requests), request)
    except NotSent:
        return {"type": "fail", "error": "not-sent"}
    except Refused as error:
        # The answer came, so the connection is good for the next request.
        return {"type": "fail", "error": f"refused: {error}"}
    except Exception as error:
        # Whatever it is, no answer was understood, and the request may have arrived. And a connection with an answer
        # on its way is of no more use: the next request would be given that answer.
        dropped(connections, member)
        return {"type": "info", "error": repr(error)}


def main():
    connections = {}
    functions = ["read", "write", "cas", "add", "append", "txn"]
    print(json.dumps({"f": "hello", "protocol": 1, "functions": functions}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        # Whoever is asked answers for itself: nobody sends this client on.
        told = {"id": request["id"], "by": request["member"], **answer(connections, request)}
        print(json.dumps(told), flush=True)


main()
