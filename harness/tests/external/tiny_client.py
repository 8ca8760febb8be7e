"""A client of tiny.py. Its argument says how it misbehaves, at its hundredth request."""
import json
import os
import socket
import sys
import threading
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
    if answer == "stuck":
        return {"type": "fail", "error": "stuck"}
    if words[0] in ("acquire", "renew", "release"):
        return {"type": "fail", "error": "busy"} if answer == "busy" else {"type": "ok", "value": int(answer)} if (
            words[0] == "acquire") else {"type": "ok"}
    if words[0] == "holders":
        return {"type": "ok", "value": json.loads(answer)}
    if words[0] in ("read", "take"):
        return {"type": "ok", "value": None if answer == "None" else int(answer)}
    if words[0] == "watch" and answer == "gone":
        return {"type": "fail", "error": "gone"}
    if words[0] == "watch":
        position, values = json.loads(answer)
        return {"type": "ok", "value": values, "position": position}
    if words[0] in ("members", "txn"):
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
    if f == "watch":
        return ["watch", key, value, request["wait_ms"]]
    if f == "cas":
        return ["cas", key, *value]
    if f == "txn":
        return ["txn", json.dumps(value, separators=(",", ":"))]
    return [f, key, value]


session_ms = int(os.environ.get("HARNESS_SESSION_TIMEOUT_MS", "4000"))
# What this client holds, by key, with its token.
held = {}


def renew():
    """Keeps the leases alive, over connections of its own, at whichever member answers."""
    members = [at.split("=")[1] for at in os.environ["HARNESS_MEMBERS"].split(",") if at]
    while True:
        time.sleep(session_ms / 1000 / 8)
        for key, token in list(held.items()):
            members.append(members.pop(0))
            host, port = members[0].rsplit(":", 1)
            try:
                with socket.create_connection((host, int(port)), timeout=0.3) as connection:
                    connection.settimeout(0.3)
                    connection.sendall(f"renew {key} {token} {session_ms}\n".encode())
                    connection.recv(100)
            except OSError:
                pass


def on_lock(request):
    f, key, value, member = request["f"], request["key"], request["value"], request["member"]
    seconds = request["timeout_ms"] / 1000
    if f == "acquire":
        deadline = time.monotonic() + seconds
        while True:
            answer = ask(member, seconds, ["acquire", key, session_ms])
            if answer["type"] == "ok":
                held[key] = answer["value"]
            if answer.get("error") != "busy" or time.monotonic() > deadline:
                return answer
            time.sleep(0.03)
    if f == "store":
        # Without a look at anything: a client as many are written.
        host, port = os.environ["HARNESS_STORE"].rsplit(":", 1)
        try:
            with socket.create_connection((host, int(port)), timeout=seconds) as store:
                store.sendall(json.dumps({"key": key, "token": value[0], "value": value[1]}).encode() + b"\n")
                return {"type": "ok", "value": json.loads(store.makefile().readline())}
        except (OSError, ValueError) as error:
            return {"type": "info", "error": repr(error)}
    if f == "release":
        held.pop(key, None)
        return ask(member, seconds, ["release", key, value])
    return ask(member, seconds, ["holders", key])


if conduct == "mute":
    time.sleep(1000)
threading.Thread(target=renew, daemon=True).start()
functions = ["read", "write", "cas", "add", "enqueue", "dequeue", "acquire", "store", "release", "txn",
             "watch"]
print(json.dumps({"f": "hello", "protocol": 1, "functions": functions}), flush=True)
for number, line in enumerate(sys.stdin):
    request = json.loads(line)
    if request["f"] not in functions:
        print(json.dumps({"id": request["id"], "type": "fail", "error": "unsupported"}), flush=True)
        continue
    if conduct == "unready" and number < 3:
        print(json.dumps({"id": request["id"], "type": "fail", "error": "not yet"}), flush=True)
        continue
    if request["of"] == "lock":
        answer = on_lock(request)
    else:
        answer = ask(request["member"], request["timeout_ms"] / 1000, words_of(request))
    answer = {"id": request["id"], **answer}
    # Reads at the end may take longer than others: the first of each member finds no answer.
    if conduct == "last" and request["f"] == "read" and request["timeout_ms"] == 5000:
        try:
            os.close(os.open("asked-" + request["member"], os.O_CREAT | os.O_EXCL))
            time.sleep(1000)
        except FileExistsError:
            pass
    # Soon enough for whoever is slow.
    if number == 20:
        print("it misbehaves now: " + conduct, file=sys.stderr, flush=True)
        if conduct == "garbage":
            print("Traceback (most recent call last):", flush=True)
        if conduct == "twice":
            print(json.dumps(answer), flush=True)
        if conduct == "shorter":
            answer["value"] = answer["value"][1:]
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
