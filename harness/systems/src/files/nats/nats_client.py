"""A client of NATS JetStream that speaks lines: one request, one answer, nothing tried again.

Sets, lists and logs are subjects of one stream with three replicas: an element is a message, and its place in the
list is its place in the stream. A register is the last message of its subject. Queues are subjects of a
stream of their own, which drops what is acknowledged (a work queue); each has one consumer, which hands its
messages out to whoever asks. A watch is a consumer that begins behind a message of the stream; its position is
the message's number, which is the same at every member.

What matters is the word that ends each operation:
  ok    the stream's leader acknowledged it, which it does when a quorum has it.
  fail  it CERTAINLY had no effect: the request never left, nobody was there to take it, or the leader refused
        it by what it compared.
  info  nobody knows. When in doubt, this one: a wrong fail accuses NATS of what the client did.
"""
import base64
import json
import os
import socket
import sys
import time

STREAM, QUEUES = "H", "Q"
STREAMS = {
    STREAM: {"subjects": ["set.>", "list.>", "register.>", "log.>"]},
    QUEUES: {"subjects": ["queue.>"], "retention": "workqueue"},
}
# The number of JetStream's error: the last message of the subject was another one.
WRONG_LAST_SEQUENCE = 10071
# What is handed out and not acknowledged within this is handed out again.
ACK_WAIT_NS = 2_000_000_000
# A consumer of a watch that nobody asks for so long is gone.
IDLE_NS = 5_000_000_000
# Where what was handed out is acknowledged, by queue and element. Any member takes it.
HANDED_OUT = {}


class NotSent(Exception):
    """The request never left this process."""


class Refused(Exception):
    """It certainly had no effect."""


class Unknown(Exception):
    """An answer that tells nothing."""


class Connection:
    def __init__(self, member, seconds):
        host, port = member.rsplit(":", 1)
        try:
            self.socket = socket.create_connection((host, int(port)), timeout=seconds)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.file = self.socket.makefile("rb")
            self.line()  # INFO
            hello = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True}
            # All connections share the server's subjects, so each has an inbox that nobody else has.
            self.inbox = b"_INBOX." + os.urandom(12).hex().encode()
            words = (json.dumps(hello).encode(), self.inbox)
            self.socket.sendall(b"CONNECT %s\r\nSUB %s.* 1\r\nPING\r\n" % words)
            while self.line() != b"PONG":
                pass
        except (OSError, EOFError) as error:
            raise NotSent from error
        self.asked = 0
        self.has = set()
        # By key: the consumer of a watch, and up to where it told.
        self.watches = {}

    def line(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError
        return line[:-2]

    def ask(self, until, subject, payload=b"", headers=b""):
        """A request and its answer, in one write."""
        self.asked += 1
        inbox = b"%s.%d" % (self.inbox, self.asked)
        subject = subject.encode()
        if headers:
            headers = b"NATS/1.0\r\n" + headers + b"\r\n\r\n"
            sizes = (len(headers), len(headers) + len(payload))
            request = b"HPUB %s %s %d %d\r\n" % (subject, inbox, *sizes) + headers + payload + b"\r\n"
        else:
            request = b"PUB %s %s %d\r\n" % (subject, inbox, len(payload)) + payload + b"\r\n"
        self.socket.settimeout(max(until - time.monotonic(), 0.001))
        self.socket.sendall(request)
        while True:
            self.socket.settimeout(max(until - time.monotonic(), 0.001))
            words = self.line().split(b" ")
            if words[0] == b"PING":
                self.socket.sendall(b"PONG\r\n")
            elif words[0] in (b"MSG", b"HMSG"):
                body = self.file.read(int(words[-1]) + 2)
                if len(body) != int(words[-1]) + 2:
                    raise EOFError
                # A message that a consumer hands out has its own subject, and says where it is acknowledged.
                self.reply_to = words[3] if len(words) == (5 if words[0] == b"MSG" else 6) else b""
                if words[1] != inbox and not self.reply_to.startswith(b"$JS.ACK."):
                    continue
                if words[0] == b"MSG":
                    return body[:-2]
                if body.startswith(b"NATS/1.0 503"):
                    # Nobody listens to that subject: the request went nowhere.
                    raise Refused("no responders")
                if body.startswith(b"NATS/1.0 404") or body.startswith(b"NATS/1.0 408"):
                    return None
                if body.startswith(b"NATS/1.0 409"):
                    raise Refused(body.split(b"\r\n")[0].decode())
                return body[int(words[-2]) : -2]
            elif words[0] == b"-ERR":
                raise EOFError

    def api(self, until, what, request):
        return json.loads(self.ask(until, f"$JS.API.{what}", json.dumps(request).encode()))

    def makes(self, until, what, settings):
        """Made by whoever comes first; to make the same again does nothing."""
        if what in self.has:
            return
        try:
            answer = self.api(until, what, settings)
        except Refused:
            raise
        except Exception as error:
            # No answer, or none that can be read. The operation itself has not begun.
            raise NotSent from error
        if "error" in answer:
            raise Refused(f"not there yet: {answer['error'].get('description')}")
        self.has.add(what)

    def makes_the_stream(self, until, of):
        stream = QUEUES if of == "queue" else STREAM
        settings = {"name": stream, "num_replicas": 3, "storage": "file", **STREAMS[stream]}
        self.makes(until, f"STREAM.CREATE.{stream}", settings)

    def makes_the_consumer(self, until, key):
        config = {"durable_name": f"c{key}", "filter_subject": f"queue.{key}", "ack_policy": "explicit"}
        config["ack_wait"] = ACK_WAIT_NS
        request = {"stream_name": QUEUES, "config": config}
        self.makes(until, f"CONSUMER.DURABLE.CREATE.{QUEUES}.c{key}", request)

    def publish(self, until, subject, value, headers=b""):
        answer = json.loads(self.ask(until, subject, str(value).encode(), headers))
        error = answer.get("error")
        if error is None and answer.get("stream") in STREAMS:
            return answer["seq"]
        if error and error.get("err_code") == WRONG_LAST_SEQUENCE:
            raise Refused("somebody was faster")
        raise Unknown(str(error or answer))

    def next_of(self, until, key):
        """The first message that nobody has; none where there is none."""
        request = json.dumps({"batch": 1, "no_wait": True}).encode()
        data = self.ask(until, f"$JS.API.CONSUMER.MSG.NEXT.{QUEUES}.c{key}", request)
        if data is None:
            return None
        if not self.reply_to:
            raise Unknown(data.decode())
        element = int(data)
        HANDED_OUT[key, element] = self.reply_to
        return element

    def watch(self, until, key, place, wait_ms):
        """What was written to a register behind a place, in order, and up to where that is all."""
        subject = f"register.{key}"
        if place is None:
            # It begins with what comes after the last message.
            return [], self.message(until, {"last_by_subj": subject})[1]
        consumer, told = self.watches.pop(key, (None, None))
        if told != place:
            config = {"deliver_policy": "by_start_sequence", "opt_start_seq": place + 1, "filter_subject": subject}
            config |= {"ack_policy": "none", "inactive_threshold": IDLE_NS, "mem_storage": True, "num_replicas": 1}
            answer = self.api(until, f"CONSUMER.CREATE.{STREAM}", {"stream_name": STREAM, "config": config})
            if "error" in answer:
                raise Unknown(str(answer["error"]))
            consumer = answer["name"]
        changes = []
        # The first is waited for. That there is none the server says too; silence is no answer.
        asks = {"batch": 1, "expires": wait_ms * 1_000_000}
        while True:
            data = self.ask(until, f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{consumer}", json.dumps(asks).encode())
            if data is None:
                break
            if not self.reply_to:
                raise Unknown(data.decode())
            # $JS.ACK.stream.consumer.tries.PLACE.…, and with a domain and an account before the stream.
            words = self.reply_to.split(b".")
            place = int(words[5 if len(words) == 9 else 7])
            changes.append(int(data))
            asks = {"batch": 1, "no_wait": True}
        self.watches[key] = consumer, place
        return changes, place

    def message(self, until, which, stream=STREAM):
        """A message with its place; none where there is none."""
        answer = self.api(until, f"STREAM.MSG.GET.{stream}", which)
        error = answer.get("error")
        if error is None:
            message = answer["message"]
            # Payloads are base64 in JSON.
            return int(base64.b64decode(message.get("data", ""))), message["seq"]
        if error.get("code") == 404:
            return None, 0
        raise Unknown(str(error))

    def close(self):
        self.socket.close()


def read(connection, until, of, key):
    subject, stream = f"{of}.{key}", QUEUES if of == "queue" else STREAM
    if of == "register":
        return connection.message(until, {"last_by_subj": subject})[0]
    values, place = [], 0
    while True:
        value, place = connection.message(until, {"seq": place + 1, "next_by_subj": subject}, stream)
        if value is None:
            return values
        values.append(value)


def poll(connection, until, key, start, most):
    """The records of a log from an offset on. An offset is a message's place in the stream."""
    records, place = [], start - 1
    while len(records) < most:
        value, place = connection.message(until, {"seq": place + 1, "next_by_subj": f"log.{key}"})
        if value is None:
            break
        records.append([place, value])
    return records


def perform(connection, until, request):
    f, of, key, value = request["f"], request["of"], request["key"], request["value"]
    connection.makes_the_stream(until, of)
    subject = f"{of}.{key}"
    if f == "read":
        return {"type": "ok", "value": read(connection, until, of, key)}
    if f == "send":
        return {"type": "ok", "value": connection.publish(until, subject, value)}
    if f == "poll":
        return {"type": "ok", "value": poll(connection, until, key, max(value[0], 1), value[1])}
    if f in ("write", "add", "append", "enqueue"):
        connection.publish(until, subject, value)
    elif f == "watch":
        try:
            changes, place = connection.watch(until, key, value, request["wait_ms"])
        except Refused as error:
            # The consumer is gone with its server: the next request makes another, from the same place.
            raise Unknown(str(error)) from error
        return {"type": "ok", "value": changes, "position": place}
    elif f == "dequeue":
        connection.makes_the_consumer(until, key)
        element = connection.next_of(until, key)
        # In a list: it is to be acknowledged, and may be handed out again until it is.
        return {"type": "ok", "value": None if element is None else [element]}
    elif f == "acknowledge":
        where = HANDED_OUT.pop((key, value), None)
        if where is None:
            return {"type": "fail", "error": "not handed out to this process"}
        # With a subject for the answer the server says when it has the acknowledgement.
        connection.ask(until, where.decode(), b"+ACK")
    elif f == "cas":
        # The server compares places and not values. What was read may be old, so it is no observation.
        found, place = connection.message(until, {"last_by_subj": subject})
        if found != value[0]:
            return {"type": "fail", "error": "another value"}
        connection.publish(until, subject, value[1], b"Nats-Expected-Last-Subject-Sequence: %d" % place)
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
        return perform(connections[member], time.monotonic() + seconds, request)
    except NotSent:
        dropped(connections, member)
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
    functions = ["read", "write", "cas", "add", "append", "enqueue", "dequeue", "acknowledge",
                 "watch", "send", "poll"]
    print(json.dumps({"f": "hello", "protocol": 1, "functions": functions}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps({"id": request["id"], **answer(connections, request)}), flush=True)


main()
