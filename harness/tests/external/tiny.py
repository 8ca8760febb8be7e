"""A small replicated store for tests: every member is a process of this, and all share one file.

The file is what makes it linearizable: whoever answers holds its lock meanwhile. With --apart each member keeps
its own values instead, with --forgets every tenth addition is acknowledged and not made, and with --doubles
every tenth element that is taken stays where it was. With --torn others may come between the parts of a
transaction.

A line is a request: `read K`, `write K V`, `cas K FROM TO`, `add K V`, `members K`, `take K`, `txn JSON`, `ping`,
`role`.
`watch K POSITION MS` waits so long for what was written behind a position of the key's log, and tells it with
the next position. With --loses each 20th write is left out there, with --repeats it is told twice, with --turns
it is told before the one that it follows, and with --trims the log has its newest 12 writes.
A lock is a lease: `acquire K MS` gives a token, or `busy`; `renew K TOKEN MS` and `release K TOKEN` are for its
holder; `holders K` lists the token of whoever holds.
With --stops-WAY it stops for good some seconds after its first request: it refuses all (refusing), answers nothing
(silent), ends (dead), or answers nothing at the first member alone (member) or refuses one key alone (key).
Members dial each other and send `ping` all the while, so that cuts between them have something to hold.
"""
import fcntl
import json
import os
import socket
import socketserver
import sys
import threading
import time

client_port, peer_port, path, leader, apart = (
    int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4] == "1", "--apart" in sys.argv)
forgets, doubles, torn = "--forgets" in sys.argv, "--doubles" in sys.argv, "--torn" in sys.argv
others = [one.rsplit(":", 1) for one in sys.argv[5].split(",") if one]
own, lock = {}, threading.Lock()
stops = next((flag[len("--stops-"):] for flag in sys.argv if flag.startswith("--stops-")), None)
# When it was asked first, for something that counts.
asked = []


def stopped(words):
    """What it says when it has stopped, to what it has stopped for; None while it goes on."""
    if stops is None or words[0] in ("ping", "role"):
        return None
    asked.append(time.monotonic())
    if asked[-1] < asked[0] + 4 or (stops == "key" and words[1] != "1") or (stops == "member" and not leader):
        return None
    if stops == "dead":
        os._exit(1)
    if stops in ("silent", "member"):
        time.sleep(1000)
    return "stuck"


def on_values(change):
    """What `change` makes of the values, with nobody else at them."""
    if apart:
        with lock:
            return change(own)
    with open(path + ".lock", "w", encoding="ascii") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        before = "{}"
        if os.path.exists(path):
            with open(path, encoding="ascii") as file:
                before = file.read()
        values = json.loads(before)
        answer = change(values)
        after = json.dumps(values)
        if after != before:
            # Whoever is killed here leaves what was there before, or all of what is new.
            with open(path + ".new", "w", encoding="ascii") as file:
                file.write(after)
            os.replace(path + ".new", path)
        return answer


def cas(values, key, wanted, value):
    if values.get(key) != wanted:
        return "mismatch"
    values[key] = value
    return "ok"


def write(values, key, value):
    values[key] = value
    values.setdefault("log" + key, []).append(value)
    return "ok"


def watch(key, position, ms):
    deadline = time.monotonic() + ms / 1000
    while True:
        log = on_values(lambda values: values.get("log" + key, []))
        start = len(log) if position == "None" else int(position)
        if len(log) > start or position == "None" or time.monotonic() > deadline:
            break
        time.sleep(0.01)
    if "--trims" in sys.argv and start < len(log) - 12:
        return "gone"
    told = []
    for at in range(start, len(log)):
        is_wrong = at % 20 == 19
        if is_wrong and "--loses" in sys.argv:
            continue
        told.append(log[at])
        if is_wrong and "--repeats" in sys.argv:
            told.append(log[at])
        if is_wrong and "--turns" in sys.argv and at > start:
            told[-2:] = told[:-3:-1]
    return json.dumps([len(log), told])


def take(values, key):
    elements = values.get(key, [])
    if not elements:
        return "None"
    return str(elements[0] if doubles and elements[0] % 10 == 0 else elements.pop(0))


def do(values, micros):
    told = []
    for f, key, value in micros:
        elements = values.setdefault(f"list{key}", [])
        if f == "append":
            elements.append(value)
        told.append([f, key, value if f == "append" else list(elements)])
    return told


def transaction(micros):
    if not torn:
        return on_values(lambda values: do(values, micros))
    told = []
    for micro in micros:
        told += on_values(lambda values: do(values, [micro]))
        time.sleep(0.002)
    return told


def on_lock(values, what, key, numbers):
    held = values.setdefault("lock" + key, {"token": 0, "until": 0.0})
    now = time.monotonic()
    is_held = held["until"] > now
    if what == "acquire" and not is_held:
        held.update(token=held["token"] + 1, until=now + numbers[0] / 1000)
        return str(held["token"])
    if what == "holders":
        return json.dumps([held["token"]] if is_held else [])
    if what == "acquire" or not is_held or held["token"] != numbers[0]:
        return "busy"
    held["until"] = now + numbers[1] / 1000 if what == "renew" else 0.0
    return "ok"


def reply(words):
    what = words[0]
    if what == "ping":
        return "pong"
    if what == "role":
        return "leader" if leader else "follower"
    if what == "txn":
        return json.dumps(transaction(json.loads(words[1])))
    key = words[1]
    if what in ("acquire", "renew", "release", "holders"):
        return on_values(lambda values: on_lock(values, what, key, [int(word) for word in words[2:]]))
    if what == "read":
        return str(on_values(lambda values: values.get(key)))
    if what == "write":
        return on_values(lambda values: write(values, key, int(words[2])))
    if what == "watch":
        return watch(key, words[2], int(words[3]))
    if what == "cas":
        return on_values(lambda values: cas(values, key, int(words[2]), int(words[3])))
    if what == "add" and forgets and int(words[2]) % 10 == 0:
        return "ok"
    if what == "add":
        return on_values(lambda values: values.setdefault(key, []).append(int(words[2])) or "ok")
    if what == "take":
        return on_values(lambda values: take(values, key))
    return json.dumps(on_values(lambda values: values.get(key, [])))


class Handler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        for line in self.rfile:
            words = line.decode().split()
            self.wfile.write(((stopped(words) or reply(words)) + "\n").encode())


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def visit(host, port):
    while True:
        try:
            with socket.create_connection((host, int(port))) as other:
                lines = other.makefile("rb")
                while True:
                    other.sendall(b"ping\n")
                    if not lines.readline():
                        break
                    time.sleep(0.02)
        except OSError:
            time.sleep(0.02)


for host, port in others:
    threading.Thread(target=visit, args=(host, port), daemon=True).start()
threading.Thread(target=Server(("127.0.0.1", peer_port), Handler).serve_forever, daemon=True).start()
Server(("127.0.0.1", client_port), Handler).serve_forever()
