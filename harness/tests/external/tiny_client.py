"""A client of tiny.py. Its argument says how it misbehaves, at its hundredth request."""
import json
import socket
import sys
import time

conduct = sys.argv[1] if len(sys.argv) > 1 else "sound"
connections = {}


def ask(member, seconds, words):
    if member not in connections:
        host, port = member.rsplit(":", 1)
        try:
            connections[member] = socket.create_connection((host, int(port)), timeout=seconds)
        except OSError:
            return {"type": "fail", "error": "not-sent"}
    try:
        connection = connections[member]
        connection.settimeout(seconds)
        connection.sendall((" ".join(map(str, words)) + "\n").encode())
        line = b""
        while not line.endswith(b"\n"):
            part = connection.recv(1 << 16)
            if not part:
                raise EOFError
            line += part
    except (OSError, EOFError) as error:
        connections.pop(member).close()
        return {"type": "info", "error": repr(error)}
    answer = line.decode().strip()
    if words[0] in ("read", "take"):
        return {"type": "ok", "value": None if answer == "None" else int(answer)}
    if words[0] == "members":
        return {"type": "ok", "value": json.loads(answer)}
    if answer == "mismatch":
        return {"type": "fail", "error": "mismatch"}
    return {"type": "ok"}


def words_of(request):
    f, key, value = request["f"], request["key"], request["value"]
    if f == "read":
        return ["read" if request["of"] == "register" else "members", key]
    if f == "enqueue":
        return ["add", key, value]
    if f == "dequeue":
        return ["take", key]
    if f == "cas":
        return ["cas", key, *value]
    return [f, key, value]


if conduct == "mute":
    time.sleep(1000)
functions = ["read", "write", "cas", "add", "enqueue", "dequeue"]
print(json.dumps({"f": "hello", "protocol": 1, "functions": functions}), flush=True)
for number, line in enumerate(sys.stdin):
    request = json.loads(line)
    if request["f"] not in functions:
        print(json.dumps({"id": request["id"], "type": "fail", "error": "unsupported"}), flush=True)
        continue
    if conduct == "unready" and number < 3:
        print(json.dumps({"id": request["id"], "type": "fail", "error": "not yet"}), flush=True)
        continue
    answer = {"id": request["id"], **ask(request["member"], request["timeout_ms"] / 1000, words_of(request))}
    if number == 100:
        print("it misbehaves now: " + conduct, file=sys.stderr, flush=True)
        if conduct == "garbage":
            print("Traceback (most recent call last):", flush=True)
        if conduct == "twice":
            print(json.dumps(answer), flush=True)
        if conduct == "flood":
            while True:
                print("x" * 65536, end="", flush=True)
        if conduct == "hang":
            time.sleep(1000)
        if conduct == "late":
            time.sleep(3)
        if conduct == "die":
            sys.exit(1)
    print(json.dumps(answer), flush=True)
